import { connect as connectSocket } from "node:net";
import { Client } from "pg";
import { droppedSetting, parseSettings } from "./requested-settings.ts";
import { beginSql, readCommitted } from "./pinned-settings.ts";
import { requireChannelBinding } from "./channel-binding.ts";
import type { Host, Way } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

// Documented by node-postgres, but missing in its types.
declare module "pg" {
  interface Client {
    readonly processID: number | null;
    readonly secretKey: number | null;
  }
}

/** A session's timeouts, in milliseconds. 0 means none. */
export interface SessionTimeouts {
  /** For waiting for a row or table lock. The server cancels the statement. */
  readonly lockTimeoutMs: number;
  /** For running one statement. The server cancels it. */
  readonly statementTimeoutMs: number;
  /** For waiting for a response, if the server does not cancel the statement. The connection is then closed. */
  readonly responseTimeoutMs: number;
}

/** A notice: the function in the server's source that reported it, its SQLSTATE, and its text in any language. */
export interface Notice {
  readonly routine?: string | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** Options for {@link connectTo}. */
export interface ConnectOptions {
  readonly timeouts: SessionTimeouts | undefined;
  /** Whether query plans are cached for the connection's lifetime. */
  readonly cachesPlans: boolean;
  /** Further settings for every session, by name. */
  readonly settings: ReadonlyMap<string, string>;
  /** Whether read-only hosts are refused. Used for several hosts, because only one is the primary. */
  readonly mustBeWritable: boolean;
  /** The deadline, on the `performance.now()` clock, in addition to the host's timeout. */
  readonly deadlineMs: number;
  /**
   * Called with a new connection.
   *
   * @param refusal - why the server has refused the session's settings, if it has
   */
  readonly onConnected: (refusal: string | undefined) => void;
  /** Called when a connection is lost or cannot be established. */
  readonly onLost: (client: Client) => void;
  readonly onNotice: (notice: Notice) => void;
}

/**
 * The timeout for closing a connection or cancelling its statement, in milliseconds. A running server needs a few
 * milliseconds. An unreachable one never responds.
 */
export const closeTimeoutMs = 500;

/**
 * Connects to a host, trying its {@link Way}s in order. Rejects with the last way's error.
 *
 * Poolers refuse settings in the start-up parameters, or all start-up parameters that they do not know. Once they are
 * refused, the host is tried without them. Then the role's settings apply.
 */
export async function connectTo({ ways, connectTimeoutMs }: Host, options: ConnectOptions): Promise<Client> {
  let fault: unknown;
  let refusal: string | undefined;
  const remaining = [...ways];
  for (let way = remaining.shift(); way !== undefined;) {
    const withSettings = { ...way, options: `${way.options ?? ""} ${sessionOptions(options)}`.trimStart() };
    try {
      const client = await connectBy(refusal === undefined ? withSettings : way, connectTimeoutMs, options);
      options.onConnected(refusal);
      return client;
    } catch (reason) {
      fault = isTimeout(reason) ? new Error(`${way.host} did not respond in time`, { cause: reason }) : reason;
      if (refusal === undefined && areSettingsRefused(reason))
        refusal = reason instanceof Error ? reason.message : String(reason);
      else if (canTryNextWay(reason)) way = remaining.shift();
      else break;
    }
  }
  const [requested] = parseSettings(ways[0]?.options ?? "").keys();
  if (requested !== undefined && isRefusalOfPooler(fault)) throw droppedSetting(requested);
  throw fault;
}

async function connectBy(way: Way, connectTimeoutMs: number, options: ConnectOptions): Promise<Client> {
  const limitMs = (): number => Math.max(1, Math.min(connectTimeoutMs, options.deadlineMs - performance.now()));
  const client = new Client({ ...way, connectionTimeoutMillis: limitMs() });
  // Without a listener, losing an idle connection would terminate the process.
  client.on("error", () => options.onLost(client));
  client.on("notice", options.onNotice);
  const refusalOf = way.requiresChannelBinding ? requireChannelBinding(client) : undefined;
  try {
    await client.connect();
    const refusal = refusalOf?.();
    if (refusal !== undefined) throw refusal;
    if (options.mustBeWritable) await assertWritable(client, limitMs());
    return client;
  } catch (reason) {
    // Closed here, because the caller does not get this connection.
    void disconnect(client);
    throw reason;
  }
}

/** Closes a connection, immediately if a statement is running. Never rejects. */
export async function disconnect(client: Client): Promise<void> {
  setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs).unref();
  // Errors are ignored, because the connection is discarded anyway.
  await client.end().catch(() => undefined);
}

// Shows the warning that a commit is not on the standbys, even if the role or the URL sets other levels.
const showWarnings = "-c client_min_messages=debug1";

// A statement fails (42501) instead of missing rows that a policy hides.
const refuseHiddenRows = "-c row_security=off";

// CancelRequest (postgresql.org/docs/current/protocol-message-formats.html): its length, its code, and the connection's
// process id and secret key.
const cancelBytes = 16;
const cancelCode = 80_877_102;

/**
 * Asks the server to cancel a connection's statement, which may otherwise wait for synchronous standbys forever, even
 * after the connection is closed. Resolves to whether the server accepted the request within {@link closeTimeoutMs}.
 * Keep the connection open until then, because PgBouncer forgets its statement when it is closed.
 */
export async function cancelStatement({ host, port, processID, secretKey }: Client): Promise<boolean> {
  const request = Buffer.alloc(cancelBytes);
  [cancelBytes, cancelCode, processID, secretKey].forEach((number, i) => request.writeInt32BE(number ?? 0, 4 * i));
  const socket = host.startsWith("/") ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host);
  const { promise: isAccepted, resolve } = Promise.withResolvers<boolean>();
  // Errors are ignored. A stopped server runs no statement. A running server responds by closing the connection. The
  // socket is not half-closed here, because a pooler may treat that as a disconnected client.
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

// A plan that is cached while a table is empty would use sequential scans and nested loops, even when the table has
// millions of rows later. JIT is off because disabled plan types get huge cost estimates, which would trigger
// compilation.
const cachedPlanOptions = "-c enable_seqscan=off -c enable_nestloop=off -c jit=off";

/** Returns the `options` that every session sets, after the URL's, which they override. */
export function sessionOptions(options: Pick<ConnectOptions, "timeouts" | "cachesPlans" | "settings">): string {
  const { timeouts, cachesPlans, settings } = options;
  // Set in `options`, because node-postgres cannot send timeout 0, which is needed to override the role's.
  const limits =
    timeouts && `-c lock_timeout=${timeouts.lockTimeoutMs} -c statement_timeout=${timeouts.statementTimeoutMs}`;
  const further = [...settings].map(([name, value]) => `-c ${name}=${value}`);
  return [showWarnings, ...further, refuseHiddenRows, limits ?? "", cachesPlans ? cachedPlanOptions : ""]
    .filter(Boolean)
    .join(" ");
}

async function assertWritable(client: Client, limitMs: number): Promise<void> {
  // Read in a transaction, which starts with the connection's initial settings.
  const text = `${beginSql(readCommitted)}; SHOW transaction_read_only; ROLLBACK`;
  // With a timeout, so that the other hosts are tried if this one hangs.
  const timeout = { query_timeout: limitMs };
  const results = [await client.query({ text, ...timeout })].flat();
  const isWritable = results.some(({ rows }) => rows[0]?.transaction_read_only === "off");
  if (!isWritable) throw new Error("the server is read-only");
}

// 08P01: PgBouncer does not know a start-up parameter. 0A000: Amazon RDS Proxy does not support `options`.
function isRefusalOfPooler(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  return sqlState === "08P01" || sqlState === "0A000";
}

// The SQLSTATEs with which servers refuse a setting: unknown (42704), not permitted to the user (42501), not possible
// at the start (55P02) or with an invalid value (22023).
function areSettingsRefused(fault: unknown): boolean {
  return isRefusalOfPooler(fault) || /^(?:22|42|55P02)/.test(sqlStateOf(fault) ?? "");
}

// The messages from node-postgres when a connection or a query times out.
function isTimeout(fault: unknown): boolean {
  return fault instanceof Error && (fault.message === "timeout expired" || fault.message === "Query read timeout");
}

// Ways differ in TLS, so other errors would be the same for all ways.
function canTryNextWay(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  // 28000: pg_hba.conf has no entry for this kind of connection.
  if (sqlState !== undefined) return sqlState === "28000";
  const isTlsFault =
    fault instanceof Error && "code" in fault && /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(String(fault.code));
  return isTlsFault || String(fault) === "Error: The server does not support SSL connections";
}
