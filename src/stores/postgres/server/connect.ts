import { connect as connectSocket } from "node:net";
import { Client, type ClientConfig } from "pg";
import { droppedSetting, readSettings } from "./asked-settings.ts";
import { beginSql, readCommitted } from "./pinned-settings.ts";
import type { Host } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

// Documented by node-postgres, but missing in its types.
declare module "pg" {
  interface Client {
    readonly processID: number | null;
    readonly secretKey: number | null;
  }
}

/** The time-outs of a session, in milliseconds; 0 means none. */
export interface SessionTimeouts {
  /** For waiting for a row or table lock. The server ends the statement. */
  readonly lockTimeoutMs: number;
  /** For running one statement. The server ends it. */
  readonly statementTimeoutMs: number;
  /**
   * For waiting for the response when even the server's own time-outs do not end the statement. The connection is
   * dropped.
   */
  readonly answerTimeoutMs: number;
}

/** The parts of a notice of the server that matter here. */
export interface Notice {
  /** The routine of the server that sent it. */
  readonly routine?: string | undefined;
  /** Its SQLSTATE; `01000` for most warnings. */
  readonly code?: string | undefined;
  /** Its text, in the language of the server. Citus appends the detail and the hint of a worker's notice. */
  readonly message?: string | undefined;
}

/** Options of {@link connectTo}. */
export interface ConnectOptions {
  readonly timeouts: SessionTimeouts | undefined;
  /** Whether plans are kept for as long as the connection. */
  readonly keepsPlans: boolean;
  /** Whether a read-only host is refused: only one of several hosts is the primary. */
  readonly mustBeWritable: boolean;
  /** When to give up, on the clock of `performance.now()`, whatever the time-out of the host. */
  readonly untilMs: number;
  /** Called when a connection is lost, or could not be established. */
  readonly onLost: (client: Client) => void;
  readonly onNotice: (notice: Notice) => void;
}

/**
 * How long closing a connection, or ending its statement, may take, in milliseconds: a server that is up does it within a
 * few, and one that has vanished never does. The next attempt waits for the end of a statement.
 */
export const endTimeoutMs = 500;

/** Connects to a host, trying one way after another. Rejects with the error of the last way that was tried. */
export async function connectTo({ ways, connectTimeoutMs }: Host, options: ConnectOptions): Promise<Client> {
  let fault: unknown;
  // PgBouncer refuses unknown start-up parameters; behind it the settings of the server apply.
  const waysWithSettings = ways.map((way) => ({ ...way, ...settingsOf(options, way.options) }));
  const limitMs = (): number => Math.max(1, Math.min(connectTimeoutMs, options.untilMs - performance.now()));
  for (const way of [...waysWithSettings, ...ways]) {
    const client = new Client({ ...way, connectionTimeoutMillis: limitMs() });
    // Without a listener the loss of an idle connection would end the process.
    client.on("error", () => options.onLost(client));
    client.on("notice", options.onNotice);
    try {
      await client.connect();
      if (options.mustBeWritable) await demandWritable(client, limitMs());
      return client;
    } catch (reason) {
      fault = isTimeout(reason) ? new Error(`${way.host} did not respond in time`, { cause: reason }) : reason;
      // Closes what was opened, since the caller does not get it.
      void disconnect(client);
      if (!mayAnotherWayDo(reason)) break;
    }
  }
  const [asked] = readSettings(ways[0]?.options ?? "").keys();
  if (asked !== undefined && sqlStateOf(fault) === parametersRefused) throw droppedSetting(asked);
  throw fault;
}

/**
 * Closes a connection properly, or at once if a statement is running. Resolves when it is closed, whether or not the
 * server still responds.
 */
export async function disconnect(client: Client): Promise<void> {
  setTimeout(() => client.connection.stream.destroy(), endTimeoutMs).unref();
  // An error of a connection that is broken anyway does not matter.
  await client.end().catch(() => undefined);
}

// The warning that a commit is not on its standbys must arrive, whatever the role or the URL sets. Citus passes a
// worker's warning on, in some transactions as a debug message, and always so if another worker is behind it. Other
// servers ignore the second setting; the debug messages that the first brings are ignored here.
const showWarnings = "-c client_min_messages=debug1 -c citus.worker_min_messages=debug1";

// CancelRequest (postgresql.org/docs/current/protocol-message-formats.html): its length, its code, and the two numbers
// that name the connection, of which the second is a secret.
const cancelBytes = 16;
const cancelCode = 80_877_102;

/**
 * Has the server end the statement that it is running for a connection. Otherwise the statement goes on after the
 * connection is closed, and may keep its backend forever: no time-out ends a wait for synchronous standbys.
 *
 * Resolves once the server has taken the request, or does not respond, to whether it has. Until then the connection
 * must stay open: when it closes, PgBouncer forgets what is running for it.
 */
export async function cancelStatement({ host, port, processID, secretKey }: Client): Promise<boolean> {
  const request = Buffer.alloc(cancelBytes);
  [cancelBytes, cancelCode, processID, secretKey].forEach((number, i) => request.writeInt32BE(number ?? 0, 4 * i));
  const socket = host.startsWith("/") ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host);
  const { promise: isTaken, resolve } = Promise.withResolvers<boolean>();
  // Errors are ignored: a server that is gone runs nothing. One that is there sends nothing but the end, which is
  // noticed only if the socket is read. The socket is not ended here, because a pooler may take that for a client that
  // has gone.
  socket
    .on("error", () => undefined)
    .once("close", () => resolve(socket.readableEnded))
    .setTimeout(endTimeoutMs, () => socket.destroy())
    .resume()
    .write(request);
  return await isTaken;
}

/**
 * Cuts a statement short that takes too long. If the server still responds, the statement ends with an answer, which
 * says what has become of it; otherwise the connection is closed. Resolves as {@link cancelStatement} does.
 */
export async function cutShort(client: Client): Promise<boolean> {
  setTimeout(() => client.connection.stream.destroy(), endTimeoutMs).unref();
  return await cancelStatement(client);
}

// A plan that is made while a table is empty reads the whole table, and compares each of its rows with each of others;
// it would go on to when there are millions. Where it may not, the planner thinks that a plan which has to is worth
// being compiled.
const lastingPlans = "-c enable_seqscan=off -c enable_nestloop=off -c jit=off";

/** Returns the `options` that a session asks for itself, after those of the URL, which they override. */
export function ownOptions({ timeouts, keepsPlans }: Pick<ConnectOptions, "timeouts" | "keepsPlans">): string {
  // As options, because node-postgres cannot send a time-out of 0, which overrides that of the role.
  const limits =
    timeouts && `-c lock_timeout=${timeouts.lockTimeoutMs} -c statement_timeout=${timeouts.statementTimeoutMs}`;
  return [showWarnings, limits, keepsPlans ? lastingPlans : undefined].filter((part) => part !== undefined).join(" ");
}

function settingsOf(connectOptions: ConnectOptions, options?: string): ClientConfig {
  return { options: [options, ownOptions(connectOptions)].filter((part) => part !== undefined).join(" ") };
}

// Only one of several hosts is the primary; the others are its standbys, or former primaries.
async function demandWritable(client: Client, limitMs: number): Promise<void> {
  // In a transaction, which has what the connection began with.
  const text = `${beginSql(readCommitted)}; SHOW transaction_read_only; ROLLBACK`;
  // A host that hangs here must not keep the others from being tried.
  const timeout = { query_timeout: limitMs };
  const results = [await client.query({ text, ...timeout })].flat();
  const isWritable = results.some(({ rows }) => rows[0]?.transaction_read_only === "off");
  if (!isWritable) throw new Error("the server is read-only");
}

// The SQLSTATE with which PgBouncer refuses start-up parameters that it does not know.
const parametersRefused = "08P01";

// What node-postgres says of a connection and of a query that take too long.
function isTimeout(fault: unknown): boolean {
  return fault instanceof Error && (fault.message === "timeout expired" || fault.message === "Query read timeout");
}

// Ways differ in TLS and in start-up parameters. A server that is down, or rejects the password, fails on all of them.
function mayAnotherWayDo(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  // 28000: pg_hba.conf has no entry for this kind of connection.
  if (sqlState !== undefined) return sqlState === "28000" || sqlState === parametersRefused;
  const isTlsFault =
    fault instanceof Error && "code" in fault && /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(String(fault.code));
  return isTlsFault || String(fault) === "Error: The server does not support SSL connections";
}
