import { Client, type ClientConfig } from "pg";
import { sqlStateOf } from "./fault-table.ts";
import type { Host } from "./server-url.ts";

/** How long things may take, in milliseconds. */
export interface SessionLimits {
  /** Waiting for a row or table lock. The server ends the statement. */
  readonly lockTimeoutMs: number;
  /** Running one statement. The server ends it. */
  readonly statementTimeoutMs: number;
  /** Waiting for the server's answer, when even its own time-outs do not come. The connection is given up. */
  readonly answerTimeoutMs: number;
}

/** What a server says beside its answers, as far as it is of interest. */
export interface Notice {
  /** The server's own routine that says so; the one part that is not translated. */
  readonly routine?: string | undefined;
}

/** How to connect. */
export interface ConnectOptions {
  readonly limits: SessionLimits | undefined;
  /** Refuses a host that is read-only: of several hosts one is the primary. */
  readonly mustBeWritable: boolean;
  /** Told when a connection that was made is lost, or was never made. */
  readonly onLost: (client: Client) => void;
  readonly onNotice: (notice: Notice) => void;
}

// Milliseconds. A server that is there answers within one; a network that swallows packets never does.
const connectTimeoutMs = 5_000;

// Milliseconds. A server that is there hangs up within one; one that has vanished never does.
const disconnectTimeoutMs = 1_000;

/** Connects to a host, one way after the other. Rejects with what was wrong with the last way that was tried. */
export async function connectTo({ ways }: Host, options: ConnectOptions): Promise<Client> {
  const { limits } = options;
  const limited = ways.map((way) => ({ ...way, ...serverLimits(limits) }));
  let fault: unknown;
  // PgBouncer refuses start-up parameters that it does not know; behind it the server's own settings count.
  for (const way of limits === undefined ? ways : [...limited, ...ways]) {
    const client = new Client({ ...way, connectionTimeoutMillis: connectTimeoutMs });
    // Without a listener the loss of an idle connection ends the process.
    client.on("error", () => options.onLost(client));
    client.on("end", () => options.onLost(client));
    client.on("notice", options.onNotice);
    try {
      await client.connect();
      if (options.mustBeWritable) await demandWritable(client);
      return client;
    } catch (reason) {
      fault = reason;
      // However far it came, nobody else will let go of it.
      void disconnect(client);
      if (!mayAnotherWayDo(reason)) break;
    }
  }
  throw fault;
}

/**
 * Says goodbye to the server, or hangs up at once when a statement runs. Resolves when the connection is
 * closed, whether the server is still there or not.
 */
export async function disconnect(client: Client): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), disconnectTimeoutMs);
  // What ends a connection that is broken already is of no interest.
  await client.end().catch(() => undefined);
  clearTimeout(timer);
}

function serverLimits(limits: SessionLimits | undefined): ClientConfig {
  return limits === undefined
    ? {}
    : { lock_timeout: limits.lockTimeoutMs, statement_timeout: limits.statementTimeoutMs };
}

// Of several hosts one is the primary; the others are its standbys, or were primaries before.
async function demandWritable(client: Client): Promise<void> {
  const text = "SELECT current_setting('transaction_read_only') AS read_only";
  // A host that hangs here must not keep the others from being tried.
  const timeout = { query_timeout: connectTimeoutMs };
  const { rows } = await client.query({ text, ...timeout });
  if (rows[0]?.read_only !== "off") throw new Error("the server is read-only");
}

// Ways differ in TLS and in start-up parameters. A server that is not there, or does not like the
// password, is the same on all of them.
function mayAnotherWayDo(fault: unknown): boolean {
  const sqlState = sqlStateOf(fault);
  // 28000: pg_hba.conf has no line for a connection of this kind. 08P01: PgBouncer on unknown parameters.
  if (sqlState !== undefined) return sqlState === "28000" || sqlState === "08P01";
  if (!(fault instanceof Error)) return false;
  const isTlsFault = "code" in fault && /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(String(fault.code));
  return isTlsFault || fault.message === "The server does not support SSL connections";
}
