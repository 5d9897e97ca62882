import { once } from "node:events";
import type { Client } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { type ConnectOptions, connectTo, disconnect, type Notice, type SessionLimits } from "./connect.ts";
import type { Server } from "./server-url.ts";

/** A row, its columns in the order of the statement and as text. */
export type Row = readonly (string | null)[];

/**
 * One connection to the server at a time, made when it is needed. It runs one statement at a time.
 *
 * Statements have no name: they are parsed, run and done with in one flight, which PgBouncer can give
 * to any server connection.
 */
export class Session {
  readonly #server: Server;
  readonly #limits: SessionLimits | undefined;
  readonly #connectOptions: ConnectOptions;
  /** The index of the host that is tried first. */
  #host = 0;
  #client: Client | undefined;
  #isReplicated = true;
  #isInTransaction = false;
  #isClosed = false;

  constructor(server: Server, limits?: SessionLimits) {
    this.#server = server;
    this.#limits = limits;
    this.#connectOptions = {
      limits,
      mustBeWritable: server.hosts.length > 1,
      onLost: (client) => this.#forget(client),
      onNotice: (notice) => this.#read(notice),
    };
  }

  /** Connects, unless there is a connection. Rejects with what was wrong with the last host that was tried. */
  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    if (this.#isInTransaction) throw new Error("the connection was lost in a transaction");
    const { hosts } = this.#server;
    let fault: unknown;
    for (let tried = 0; tried < hosts.length; tried++) {
      const host = hosts[this.#host];
      try {
        if (host !== undefined) return this.#take(await connectTo(host, this.#connectOptions));
      } catch (reason) {
        fault = reason;
        // The next connection begins with the next host, too: this one may take its time to fail.
        this.#host = (this.#host + 1) % hosts.length;
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

  /** Runs `COPY … FROM STDIN` with this input, which is whole: nothing of it is stored when this rejects. */
  async copyIn(text: string, input: Uint8Array): Promise<void> {
    await this.connect();
    const client = this.#client;
    if (client === undefined) throw new Error("the connection was lost");
    const copy = client.query(copyFrom(text));
    copy.end(input);
    // It finishes when the server has taken all of it, and is ready for the next statement.
    await once(copy, "finish");
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
    if (client !== undefined) void disconnect(client);
  }

  /** Says goodbye to the server, for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) await disconnect(client);
  }

  // A statement that is cancelled while it waits for its standbys succeeds, with a warning that has no
  // SQLSTATE of its own. The name of the routine is the one part of it that is not translated.
  #read(notice: Notice): void {
    if (notice.routine === "SyncRepWaitForLSN") this.#isReplicated = false;
  }

  #take(client: Client): void {
    // A connection that comes after the end would keep the process alive.
    if (this.#isClosed) void disconnect(client);
    else this.#client = client;
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = undefined;
  }
}
