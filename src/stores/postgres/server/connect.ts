import { connect as connectSocket } from "node:net";
import { Client } from "pg";
import { droppedSetting } from "./requested-settings.ts";
import { beginSql, readCommitted } from "./pinned-settings.ts";
import { requireChannelBinding } from "./channel-binding.ts";
import type { ClientOptions, Server } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

// node-postgres documents these properties, but its types lack the properties.
declare module "pg" {
  interface Client {
    readonly processID: number | null;
    readonly secretKey: number | null;
  }
}

/** A session's timeouts, in milliseconds. 0 means no timeout. */
export interface SessionTimeouts {
  readonly lockTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** Timeout for a response, after which the connection is closed. Used if the server does not cancel the statement. */
  readonly responseTimeoutMs: number;
}

/** The settings of a session, by name. */
export type SessionSettings = Readonly<Record<string, string | number>>;

/** A server notice. `routine` is a function in the server's source. `message` may be in any language. */
export interface Notice {
  readonly routine?: string | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** Options for {@link connectTo}. */
export interface ConnectOptions {
  /** The session's settings, which override the URL's settings. */
  readonly settings: SessionSettings;
  /** The server, with the settings in the URL. */
  readonly server: Server;
  /** Deadline for the connection, on the `performance.now()` clock. The URL's timeout also applies. */
  readonly deadlineMs: number;
  /** Called with a new connection. `refusal` is why the server has refused the session's settings, if it has. */
  readonly onConnected: (refusal: string | undefined) => void;
  /** Called when a connection is lost or cannot be established. */
  readonly onLost: (client: Client) => void;
  readonly onNotice: (notice: Notice) => void;
}

/** Timeout for closing a connection or cancelling a statement, in milliseconds. A running server responds sooner. */
export const closeTimeoutMs = 500;

/**
 * Connects to a server, with one attempt per set of options. Rejects with the error of the last attempt.
 *
 * Poolers may refuse settings in the start-up parameters, or all unknown start-up parameters. After a refusal, tries
 * again without the session's settings. The role's settings then apply.
 */
export async function connectTo(options: ConnectOptions): Promise<Client> {
  let fault: unknown;
  let refusal: string | undefined;
  const settings = Object.entries(options.settings).map(([name, value]) => `-c ${name}=${value}`);
  const remaining = [...options.server.attempts];
  for (let attempt = remaining.shift(); attempt !== undefined;) {
    const withSettings = { ...attempt, options: [attempt.options, ...settings].filter(Boolean).join(" ") };
    try {
      const client = await connectWith(refusal === undefined ? withSettings : attempt, options);
      options.onConnected(refusal);
      return client;
    } catch (reason) {
      fault = isTimeout(reason) ? new Error(`${attempt.host} did not respond in time`, { cause: reason }) : reason;
      if (refusal === undefined && areSettingsRefused(reason))
        refusal = reason instanceof Error ? reason.message : String(reason);
      else if (isTlsFailure(reason)) attempt = remaining.shift();
      else break;
    }
  }
  const [requested] = options.server.settings.keys();
  if (requested !== undefined && isRefusalOfPooler(fault)) throw droppedSetting(requested);
  throw fault;
}

async function connectWith(attempt: ClientOptions, options: ConnectOptions): Promise<Client> {
  const { connectionTimeoutMillis: timeoutMs, requiresChannelBinding } = attempt;
  const limitMs = (): number => Math.max(1, Math.min(timeoutMs, options.deadlineMs - performance.now()));
  const client = new Client({ ...attempt, connectionTimeoutMillis: limitMs() });
  // Without a listener, a lost idle connection would terminate the process.
  client.on("error", () => options.onLost(client));
  client.on("notice", options.onNotice);
  const refusalOf = requiresChannelBinding ? requireChannelBinding(client) : undefined;
  try {
    await client.connect();
    const refusal = refusalOf?.();
    if (refusal !== undefined) throw refusal;
    if (options.server.mustBeWritable) await assertWritable(client, limitMs());
    return client;
  } catch (reason) {
    void disconnect(client);
    throw reason;
  }
}

/** Closes a connection, immediately if a statement is running. Never rejects. */
export async function disconnect(client: Client): Promise<void> {
  setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs).unref();
  // Ignores errors, because the connection is discarded in any case.
  await client.end().catch(() => undefined);
}

// CancelRequest (postgresql.org/docs/current/protocol-message-formats.html): length, code, process id and secret key.
const cancelBytes = 16;
const cancelCode = 80_877_102;

/**
 * Asks the server to cancel a connection's statement, which may wait for synchronous standbys forever, even after the
 * connection is closed. Resolves to whether the server accepted the request within {@link closeTimeoutMs}. Keep the
 * connection open until then, because PgBouncer forgets the statement when the connection is closed.
 */
export async function cancelStatement({ host, port, processID, secretKey }: Client): Promise<boolean> {
  const request = Buffer.alloc(cancelBytes);
  [cancelBytes, cancelCode, processID, secretKey].forEach((number, i) => request.writeInt32BE(number ?? 0, 4 * i));
  const socket = host.startsWith("/") ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host);
  const { promise: isAccepted, resolve } = Promise.withResolvers<boolean>();
  // Ignores errors. A stopped server runs no statement. A running server responds by closing the connection. The client
  // does not half-close the socket, because a pooler may treat a half-closed socket as a disconnected client.
  socket
    .on("error", () => undefined)
    .once("close", () => resolve(socket.readableEnded))
    .setTimeout(closeTimeoutMs, () => socket.destroy())
    .resume()
    .write(request);
  return await isAccepted;
}

/** Calls {@link cancelStatement}, and closes the connection if the server does not respond to the statement. */
export async function abortStatement(client: Client): Promise<boolean> {
  setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs).unref();
  return await cancelStatement(client);
}

// A plan that was cached for an empty table would use sequential scans and nested loops, even for millions of rows
// later. JIT is off, because the huge cost estimates of disabled plan types would trigger compilation.
const cachedPlanSettings: SessionSettings = { enable_seqscan: "off", enable_nestloop: "off", jit: "off" };

/** Returns the settings for a session with these timeouts, which override the settings of the role and the URL. */
export function sessionSettings(
  timeouts: SessionTimeouts | undefined,
  cachesPlans: boolean,
  further: ReadonlyMap<string, string> = new Map(),
): SessionSettings {
  return {
    // The level includes the warning that a commit is not on the standbys.
    client_min_messages: "debug1",
    ...Object.fromEntries(further),
    // With this setting, a statement fails (42501) if a policy would hide rows.
    row_security: "off",
    // Timeout 0 overrides the role's timeout. If passed as a client option, node-postgres would not send timeout 0.
    ...(timeouts && { lock_timeout: timeouts.lockTimeoutMs, statement_timeout: timeouts.statementTimeoutMs }),
    ...(cachesPlans && cachedPlanSettings),
  };
}

async function assertWritable(client: Client, limitMs: number): Promise<void> {
  // Reads the setting in a transaction, because the transaction starts with the connection's initial settings. The
  // timeout ends the attempt if the server hangs.
  const query = { text: `${beginSql(readCommitted)}; SHOW transaction_read_only; ROLLBACK`, query_timeout: limitMs };
  const results = [await client.query(query)].flat();
  const isWritable = results.some(({ rows }) => rows[0]?.transaction_read_only === "off");
  if (!isWritable) throw new Error("the server is read-only");
}

// PgBouncer returns 08P01 for unknown start-up parameters. Amazon RDS Proxy returns 0A000 for `options`.
function isRefusalOfPooler(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  return sqlState === "08P01" || sqlState === "0A000";
}

// Unknown setting (42704), missing privilege (42501), not changeable at the start (55P02), or invalid value (22023).
function areSettingsRefused(fault: unknown): boolean {
  return isRefusalOfPooler(fault) || /^(?:22|42|55P02)/.test(sqlStateOf(fault) ?? "");
}

// node-postgres reports a connection timeout and a query timeout with these messages.
function isTimeout(fault: unknown): boolean {
  return fault instanceof Error && (fault.message === "timeout expired" || fault.message === "Query read timeout");
}

// The next attempt follows only after a TLS failure, because the attempts differ only in TLS.
function isTlsFailure(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  // 28000 means that pg_hba.conf has no entry for this kind of connection.
  if (sqlState !== undefined) return sqlState === "28000";
  const isTlsFault =
    fault instanceof Error && "code" in fault && /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(String(fault.code));
  return isTlsFault || String(fault) === "Error: The server does not support SSL connections";
}
