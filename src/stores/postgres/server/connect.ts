import { Client, Connection } from "pg";
import { beginSql, readCommitted } from "./pinned-settings.ts";
import { type ClientOptions, droppedSetting, type PostgresServer } from "./server-url.ts";

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

/** Timeout for closing a connection or cancelling a statement, in milliseconds. A running server responds sooner. */
export const closeTimeoutMs = 500;

/**
 * Connects to a server, with one attempt per set of options. Rejects with the error of the last attempt.
 *
 * Poolers may refuse settings in the start-up parameters, or all unknown start-up parameters. After a refusal, tries
 * again without the session's settings. The role's settings then apply.
 *
 * @param settings - the session's settings, which override the URL's settings
 * @param deadlineMs - on the `performance.now()` clock. The URL's timeout also applies
 */
export async function connectTo(
  server: PostgresServer,
  settings: Readonly<Record<string, string | number>>,
  deadlineMs: number,
): Promise<Client> {
  let switches = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  const remaining = [...server.attempts];
  for (;;) {
    const [attempt] = remaining;
    if (attempt === undefined) throw new Error("no connection attempt is left");
    try {
      const options = [attempt.options, ...switches].filter(Boolean).join(" ");
      return await connectWith({ ...attempt, ...(options && { options }) }, server.target, deadlineMs);
    } catch (fault) {
      // Unknown setting (42704), missing privilege (42501), not changeable at the start (55P02), or invalid value (22023).
      const areRefused = isRefusalOfPooler(fault) || /^(?:22|42|55P02)/.test(sqlStateOf(fault) ?? "");
      if (switches.length > 0 && areRefused) switches = [];
      else if (remaining.length > 1 && isTlsFailure(fault)) remaining.shift();
      else throw explain(fault, attempt, server);
    }
  }
}

async function connectWith(attempt: ClientOptions, target: string, deadlineMs: number): Promise<Client> {
  const limitMs = (): number => Math.max(1, Math.min(attempt.connectionTimeoutMillis, deadlineMs - performance.now()));
  const client = new Client({ ...attempt, connectionTimeoutMillis: limitMs() });
  // Without a listener, a lost idle connection would terminate the process.
  client.on("error", () => undefined);
  const refusalOf = attempt.requiresChannelBinding ? requireChannelBinding(client) : undefined;
  try {
    await client.connect();
    const refusal = refusalOf?.();
    if (refusal !== undefined) throw refusal;
    await assertTarget(client, target, limitMs());
    return client;
  } catch (reason) {
    void disconnect(client);
    throw reason;
  }
}

/**
 * Makes a client refuse servers that authenticate without channel binding, like libpq's `channel_binding=require`. The
 * client refuses before it sends the password or a proof of the password. node-postgres would continue without binding.
 *
 * @returns a function that returns why the server was refused. Call the function once the client has connected. The
 * client may report success before it notices that the connection is closed
 */
function requireChannelBinding({ connection }: Client): () => Error | undefined {
  let isBound = false;
  let refusal: Error | undefined;
  const refuse = (what: string): void => {
    refusal ??= new Error(`channel_binding is require, but the server ${what}`);
    connection.stream.destroy(refusal);
  };
  connection.prependListener("authenticationCleartextPassword", () => refuse("requests the password"));
  connection.prependListener("authenticationMD5Password", () => refuse("requests an MD5 hash of the password"));
  connection.prependListener("authenticationSASL", ({ mechanisms }: { readonly mechanisms: readonly string[] }) => {
    // The SASL mechanism with channel binding (postgresql.org/docs/current/sasl-authentication.html).
    if (!mechanisms.includes("SCRAM-SHA-256-PLUS")) refuse(`offers only ${mechanisms.join(", ")}`);
  });
  connection.prependListener("authenticationSASLFinal", () => (isBound = true));
  connection.prependListener("authenticationOk", () => {
    if (!isBound) refuse("does not authenticate the user");
  });
  return () => refusal;
}

/** A server notice. `routine` is a function in the server's source. `message` may be in any language. */
type Notice = { readonly [Field in "routine" | "code" | "message"]?: string | undefined };

/**
 * Returns the problem if a server's notice means that a commit may be missing on a standby. A statement that is cancelled
 * while it waits for standbys succeeds with a warning. The warning's text is translated, so the function compares
 * `routine`. Citus forwards only the SQLSTATE and text of a worker's warning, so any warning may mean that. 57P01 means
 * that the waiting process was terminated.
 */
export function unconfirmedBy({ routine, code = "", message = "" }: Notice): string | undefined {
  if (routine === "SyncRepWaitForLSN") return "committed, but not confirmed by its synchronous standbys";
  if (routine === "FinishRemoteTransactionCommit") return "a worker did not confirm its part of a commit";
  const isWarning = routine === "DefaultCitusNoticeReceiver" && /^(?:01|57P01)/.test(code);
  // Each new connection to a worker may get a warning about collations, after an upgrade of the C library.
  if (!isWarning || message.includes("REFRESH COLLATION VERSION")) return undefined;
  return "a worker sent a warning, possibly that its synchronous standbys have not confirmed a commit";
}

/** Closes a connection, immediately if a statement is running. Never rejects. */
export async function disconnect(client: Client): Promise<void> {
  destroySoon(client);
  // Ignores errors, because the connection is discarded in any case.
  await client.end().catch(() => undefined);
}

/** Closes a connection's socket after {@link closeTimeoutMs}, so that a statement ends although the server hangs. */
export function destroySoon({ connection }: Client): void {
  setTimeout(() => connection.stream.destroy(), closeTimeoutMs).unref();
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

async function assertTarget(client: Client, target: string, limitMs: number): Promise<void> {
  if (target === "any") return;
  // Reads the setting in a transaction, because the transaction starts with the connection's initial settings. The
  // timeout ends the attempt if the server hangs.
  const sql = target === "primary" ? "SELECT pg_catalog.pg_is_in_recovery()::int" : "SHOW transaction_read_only";
  const query = { text: `${beginSql(readCommitted)}; ${sql}; ROLLBACK`, query_timeout: limitMs };
  const values = [await client.query(query)].flat().flatMap(({ rows }) => rows.map((row) => Object.values(row)[0]));
  if (values.some((value) => value === 1 || value === "on"))
    throw new Error(target === "primary" ? "the server is a standby" : "the server is read-only");
}

/** Returns an error's SQLSTATE. Returns `undefined` for an error that did not come from the server. */
export function sqlStateOf(fault: unknown): string | undefined {
  return fault instanceof Error && "severity" in fault ? connectCodeOf(fault) : undefined;
}

// Contexts without a trigger: the parameters (`log_parameter_max_length_on_error`), the table's file that the server was
// writing to free memory, and that of Citus for each error of a worker. The server translates all but names and paths.
const otherContext = /^(?:[^"\n]*(?:\$1 = '|\b(?:base|global|pg_tblspc)\/\d)|while executing command on \S+$)/;

/** Returns whether an error occurred within a statement, such as in a trigger. The server adds a context to the error. */
export function isWithinStatement(fault: Error): boolean {
  return "where" in fault && typeof fault.where === "string" && !otherContext.test(fault.where);
}

function connectCodeOf(fault: unknown): string | undefined {
  return fault instanceof Error && "code" in fault && typeof fault.code === "string" ? fault.code : undefined;
}

// PgBouncer returns 08P01 for unknown start-up parameters. Amazon RDS Proxy returns 0A000 for `options`.
function isRefusalOfPooler(fault: unknown): boolean {
  return /^(?:08P01|0A000)$/.test(sqlStateOf(fault) ?? "");
}

// The next attempt follows only after a TLS failure, because the attempts differ only in TLS. 28000 means that
// pg_hba.conf has no entry for this kind of connection.
function isTlsFailure(fault: unknown): boolean {
  if (sqlStateOf(fault) !== undefined) return sqlStateOf(fault) === "28000";
  const isTlsFault = /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(connectCodeOf(fault) ?? "");
  return isTlsFault || String(fault) === "Error: The server does not support SSL connections";
}

// The errors of OpenSSL for a chain without a trusted authority. Node.js adds advice about the system's certificates,
// which do not apply to a URL that names a file.
const untrusted = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY_LEAF|GET_ISSUER)\w*)$/;

function explain(cause: unknown, { host, ssl }: ClientOptions, { certificates, settings }: PostgresServer): unknown {
  const [requested] = settings.keys();
  if (requested !== undefined && isRefusalOfPooler(cause)) return droppedSetting(requested);
  const message = cause instanceof Error ? cause.message : "";
  // node-postgres reports a connection timeout and a query timeout with these messages.
  if (/^(?:timeout expired|Query read timeout)$/.test(message))
    return new Error(`${host} did not respond in time`, { cause });
  if (ssl === false || ssl.ca === undefined || !untrusted.test(connectCodeOf(cause) ?? "")) return cause;
  const [authorities, reason] = [certificates.paths[0], message.replace(/[;.].*/s, "")];
  return new Error(
    `no certificate in ${authorities} (sslrootcert in the database URL) has signed that of the server: ${reason}`,
    { cause },
  );
}
