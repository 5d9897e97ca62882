import { Client, Connection } from "pg";
import { requireChannelBinding } from "./channel-binding.ts";
import { beginSql, readCommitted } from "./pinned-settings.ts";
import { droppedSetting } from "./requested-settings.ts";
import type { ClientOptions, Server } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

// node-postgres documents these properties, but its types lack the properties.
declare module "pg" {
  interface Client {
    readonly processID: number | null;
    readonly secretKey: number | null;
  }
  interface Connection {
    connect(port: number | string, host?: string): void;
    requestSsl(): void;
    cancel(processId: number | null, secretKey: number | null): void;
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
interface Notice {
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
  /** Called when a connection is lost or cannot be established. */
  readonly onLost: (client: Client) => void;
  /** Called when a commit may be missing on a synchronous standby, with the problem. */
  readonly onUnconfirmed: (problem: string) => void;
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
  let isRefused = false;
  const settings = Object.entries(options.settings).map(([name, value]) => `-c ${name}=${value}`);
  const remaining = [...options.server.attempts];
  for (let attempt = remaining.shift(); attempt !== undefined;) {
    const withSettings = { ...attempt, options: [attempt.options, ...settings].filter(Boolean).join(" ") };
    try {
      return await connectWith(isRefused ? attempt : withSettings, options);
    } catch (reason) {
      fault = isTimeout(reason)
        ? new Error(`${attempt.host} did not respond in time`, { cause: reason })
        : explainTrust(reason, options.server);
      if (!isRefused && areSettingsRefused(reason)) isRefused = true;
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
  client.on("notice", (notice) => {
    const problem = unconfirmedBy(notice);
    if (problem !== undefined) options.onUnconfirmed(problem);
  });
  const refusalOf = requiresChannelBinding ? requireChannelBinding(client) : undefined;
  try {
    await client.connect();
    const refusal = refusalOf?.();
    if (refusal !== undefined) throw refusal;
    await assertTarget(client, options.server, limitMs());
    return client;
  } catch (reason) {
    void disconnect(client);
    throw reason;
  }
}

/**
 * Returns the problem if a notice means that a commit may be missing on a standby. A statement that is cancelled while
 * it waits for standbys succeeds with a warning. The warning's text is translated, so the function compares the name of
 * the server function that sent it. Citus forwards only the SQLSTATE and text of a worker's warning, so any warning may
 * mean that. 57P01 means that the waiting process was terminated.
 */
function unconfirmedBy({ routine, code = "", message = "" }: Notice): string | undefined {
  if (routine === "SyncRepWaitForLSN") return "committed, but not confirmed by its synchronous standbys";
  if (routine === "FinishRemoteTransactionCommit") return "a worker did not confirm its part of a commit";
  const isWarning = routine === "DefaultCitusNoticeReceiver" && /^(?:01|57P01)/.test(code);
  // Each new connection to a worker may get a warning about collations, after an upgrade of the C library.
  if (!isWarning || message.includes("REFRESH COLLATION VERSION")) return undefined;
  return "a worker sent a warning, possibly that its synchronous standbys have not confirmed a commit";
}

/** Closes a connection, immediately if a statement is running. Never rejects. */
export async function disconnect(client: Client): Promise<void> {
  setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs).unref();
  // Ignores errors, because the connection is discarded in any case.
  await client.end().catch(() => undefined);
}

/**
 * Asks the server to cancel a connection's statement, which may wait for synchronous standbys forever, even after the
 * connection is closed. Uses TLS if the connection does. Resolves once the server has closed the request's connection,
 * or after {@link closeTimeoutMs}. Keep the connection open until then, because PgBouncer forgets the statement when the
 * connection is closed.
 */
export async function cancelStatement({ host, port, processID, secretKey, ssl }: Client): Promise<void> {
  const connection = new Connection({ ssl });
  const { promise: isClosed, resolve } = Promise.withResolvers<void>();
  const send = (): void => connection.cancel(processID, secretKey);
  // Ignores errors. A stopped server runs no statement. A running server responds by closing the connection.
  connection.on("error", () => resolve()).once("end", () => resolve());
  connection.once("connect", () => (ssl ? connection.requestSsl() : send())).once("sslconnect", send);
  if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
  const timer = setTimeout(resolve, closeTimeoutMs);
  await isClosed;
  clearTimeout(timer);
  connection.stream.destroy();
}

/** Calls {@link cancelStatement}, and closes the connection if the server does not respond to the statement. */
export async function abortStatement(client: Client): Promise<void> {
  setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs).unref();
  await cancelStatement(client);
}

// A plan that was cached for an empty table would use sequential scans, even for millions of rows later. JIT is off,
// because the huge cost estimates of disabled plan types would trigger compilation.
const cachedPlanSettings: SessionSettings = {
  enable_seqscan: "off",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
};

/** Returns the settings for a session with these timeouts, which override the settings of the role and the URL. */
export function sessionSettings(timeouts: SessionTimeouts | undefined, cachesPlans: boolean): SessionSettings {
  return {
    // The level includes the warning that a commit is not on the standbys.
    client_min_messages: "warning",
    // With this setting, a statement fails (42501) if a policy would hide rows.
    row_security: "off",
    // Timeout 0 overrides the role's timeout. If passed as a client option, node-postgres would not send timeout 0.
    ...(timeouts && { lock_timeout: timeouts.lockTimeoutMs, statement_timeout: timeouts.statementTimeoutMs }),
    ...(cachesPlans && cachedPlanSettings),
  };
}

async function assertTarget(client: Client, { target }: Server, limitMs: number): Promise<void> {
  if (target === "any") return;
  // Reads the setting in a transaction, because the transaction starts with the connection's initial settings. The
  // timeout ends the attempt if the server hangs.
  const sql = target === "primary" ? "SELECT pg_catalog.pg_is_in_recovery()::int" : "SHOW transaction_read_only";
  const query = { text: `${beginSql(readCommitted)}; ${sql}; ROLLBACK`, query_timeout: limitMs };
  const values = [await client.query(query)].flat().flatMap(({ rows }) => rows.map((row) => Object.values(row)[0]));
  if (values.some((value) => value === 1 || value === "on"))
    throw new Error(target === "primary" ? "the server is a standby" : "the server is read-only");
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

// The errors of OpenSSL for a chain without a trusted authority. Node.js adds advice about the system's certificates,
// which do not apply to a URL that names a file.
const untrusted = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY_LEAF|GET_ISSUER)\w*)$/;

function explainTrust(fault: unknown, { certificates }: Server): unknown {
  const [authorities] = certificates.paths;
  const isUntrusted = fault instanceof Error && "code" in fault && untrusted.test(String(fault.code));
  if (!isUntrusted || authorities === undefined) return fault;
  const [reason] = fault.message.split(/[;.]/);
  return new Error(
    `no certificate in ${authorities} (sslrootcert in the database URL) has signed that of the server: ${reason}`,
    { cause: fault },
  );
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
