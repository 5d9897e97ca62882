import { Client, type ClientConfig } from "pg";
import { sqlStateOf } from "./fault-table.ts";
import type { Server } from "./server-url.ts";

/** How long things may take, in milliseconds. */
export interface SessionLimits {
  /** Waiting for a row or table lock. The server ends the statement. */
  readonly lockTimeoutMs: number;
  /** Running one statement. The server ends it. */
  readonly statementTimeoutMs: number;
  /** Waiting for the server's answer, when even its own time-outs do not come. The connection is given up. */
  readonly answerTimeoutMs: number;
}

/** A row, its columns in the order of the statement and as text. */
export type Row = readonly (string | null)[];

// Milliseconds. A server that is there answers within one; a network that swallows packets never does.
const connectTimeoutMs = 5_000;

/**
 * One connection to the server at a time, made when it is needed. It runs one statement at a time.
 *
 * Statements have no name: they are parsed, run and done with in one flight, which PgBouncer can give
 * to any server connection.
 */
export class Session {
  readonly #server: Server;
  readonly #limits: SessionLimits | undefined;
  #client: Client | undefined;
  #isReplicated = true;
  #isInTransaction = false;
  #isClosed = false;

  constructor(server: Server, limits?: SessionLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  /** Connects, unless there is a connection. Rejects with what was wrong with the last way that was tried. */
  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    if (this.#isInTransaction) throw new Error("the connection was lost in a transaction");
    const limited = this.#server.ways.map((way) => ({ ...way, ...serverLimits(this.#limits) }));
    // PgBouncer refuses start-up parameters that it does not know; behind it the server's own settings count.
    const ways = this.#limits === undefined ? limited : [...limited, ...this.#server.ways];
    let fault: unknown;
    for (const way of ways) {
      const client = new Client({ ...way, connectionTimeoutMillis: connectTimeoutMs });
      // Without a listener the loss of an idle connection ends the process.
      client.on("error", () => this.#forget(client));
      client.on("end", () => this.#forget(client));
      client.on("notice", (notice) => this.#read(notice));
      try {
        await client.connect();
        return this.#take(client);
      } catch (reason) {
        fault = reason;
        if (!mayAnotherWayDo(reason)) break;
      }
    }
    throw fault;
  }

  /** Runs a statement. What it is rejected with is judged by {@link verdictOn}. */
  async query(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    await this.connect();
    const client = this.#client;
    if (client === undefined) throw new Error("the connection was lost");
    this.#isReplicated = true;
    const timeout = this.#limits && { query_timeout: this.#limits.answerTimeoutMs };
    const result = await client.query<(string | null)[]>({
      text,
      values: [...values],
      rowMode: "array",
      types: { getTypeParser: () => String },
      ...timeout,
    });
    if (!this.#isReplicated) throw new Error("committed, but not on the synchronous standbys");
    return result.rows;
  }

  /** Runs statements that have neither parameters nor rows to tell. */
  async run(script: string): Promise<void> {
    await this.connect();
    const client = this.#client;
    if (client === undefined) throw new Error("the connection was lost");
    await client.query(script);
  }

  /**
   * Begins a transaction with `BEGIN …`. Until {@link commit} everything runs on this one connection, and
   * fails once that is lost: the rest of a transaction must not be done without its beginning.
   */
  async begin(script: string): Promise<void> {
    await this.run(script);
    this.#isInTransaction = true;
  }

  /** Commits. Whoever is here and not there, after a fault, calls {@link discard}, which rolls back. */
  async commit(): Promise<void> {
    await this.run("COMMIT");
    this.#isInTransaction = false;
  }

  /** Lets go of the connection, at once when a statement runs. The next statement makes another. */
  discard(): void {
    this.#isInTransaction = false;
    const client = this.#client;
    this.#client = undefined;
    // What ends a connection that is broken already is of no interest.
    client?.end().catch(() => undefined);
  }

  /** Says goodbye to the server, for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  // A statement that is cancelled while it waits for its standbys succeeds, with a warning that has no
  // SQLSTATE of its own. The name of the routine is the one part of it that is not translated.
  #read(notice: { readonly routine?: string | undefined }): void {
    if (notice.routine === "SyncRepWaitForLSN") this.#isReplicated = false;
  }

  #take(client: Client): void {
    // A connection that comes after the end would keep the process alive.
    if (this.#isClosed) void client.end();
    else this.#client = client;
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = undefined;
  }
}

function serverLimits(limits: SessionLimits | undefined): ClientConfig {
  return limits === undefined
    ? {}
    : { lock_timeout: limits.lockTimeoutMs, statement_timeout: limits.statementTimeoutMs };
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
