import type { Client } from "pg";
import {
  cancelStatement,
  type ConnectOptions,
  connectTo,
  disconnect,
  type Notice,
  type SessionTimeouts,
} from "./connect.ts";
import { endWaitsOnWorkers, Shards } from "./citus.ts";
import { sqlStateOf } from "./fault-table.ts";
import type { Server } from "./server-url.ts";

// The part of the hint that is the same in all languages. After an upgrade of the C library, each new connection to a
// worker begins with this warning, so looking on a new connection would never end the doubt.
const collationHint = "REFRESH COLLATION VERSION";

// Processes. A server has about as many connections; those that are stuck for longest are forgotten first.
const stuckMax = 100;

/** A statement that may not have come to what its answer says. */
class InDoubt extends Error {}

/** A row: its columns in the order of the statement, as text. */
export type Row = readonly (string | null)[];

/**
 * A single connection to the server, made when it is needed, which runs one statement at a time.
 *
 * Statements are not named: each is parsed and run in one round trip, which PgBouncer can send to any server
 * connection.
 */
export class Session {
  readonly shards: Shards;
  readonly #server: Server;
  readonly #answerTimeout: { readonly query_timeout?: number };
  readonly #connectOptions: Omit<ConnectOptions, "mustBeWritable">;
  /** The index of the host to try first, modulo the number of hosts. */
  #host = 0;
  #client: Client | undefined;
  /** Why the last commit may not be on its standbys. */
  #doubt: string | undefined;
  /** The processes of the server that may still be running what was given up. */
  #stuck: readonly number[] = [];
  #isInTransaction = false;
  #isRunning = false;
  #isClosed = false;
  /** Ends the wait for the connection that is being established. */
  #endWait: (() => void) | undefined;

  /** @param shards - where the tables are, for the code that writes statements for this session */
  constructor(server: Server, timeouts?: SessionTimeouts, shards: Shards = new Shards()) {
    this.shards = shards;
    this.#server = server;
    this.#answerTimeout = timeouts === undefined ? {} : { query_timeout: timeouts.answerTimeoutMs };
    this.#connectOptions = {
      timeouts,
      onLost: (client) => this.#forget(client),
      onNotice: (notice) => this.#read(notice),
    };
  }

  /** Connects if there is no connection. Rejects with the error of the last host that was tried. */
  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    await this.#connectToAny();
    if (this.#stuck.length > 0) await this.#endStuck();
  }

  async #endStuck(): Promise<void> {
    try {
      this.#stuck = await endWaitsOnWorkers(this, this.#stuck);
    } catch (fault) {
      // A worker that has warned, maybe that a wait was over already, has done what it was asked to.
      if (fault instanceof InDoubt) return;
      // This connection's process is forgotten as well: a worker that is away would delay every connection.
      this.#stuck = [];
      if (sqlStateOf(fault) === undefined) this.discard();
    }
  }

  async #connectToAny(): Promise<void> {
    if (this.#isInTransaction) throw new Error("the connection was lost in a transaction");
    // Read in this order, and once: they may change from one connection to the next.
    const { hosts, mustBeWritable } = this.#server;
    const options = { ...this.#connectOptions, mustBeWritable };
    let fault: unknown = closed();
    for (let tried = 0; tried < hosts.length && !this.#isClosed; tried++) {
      const host = hosts[this.#host % hosts.length];
      try {
        if (host !== undefined) return await this.#takeOf(connectTo(host, options));
      } catch (reason) {
        fault = reason;
        // The next attempt starts with the next host, too: this one may be slow to fail.
        this.#host++;
      }
    }
    throw fault;
  }

  /** Runs a statement. {@link verdictOn} judges what it rejects with. */
  async query(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const client = await this.#connected();
    const running = client.query<(string | null)[]>({
      text,
      values: [...values],
      rowMode: "array",
      types: { getTypeParser: () => String },
      ...this.#answerTimeout,
    });
    const { rows } = await this.#endOf(client, running);
    return rows;
  }

  /** Runs statements without parameters and results. */
  async run(script: string): Promise<void> {
    const client = await this.#connected();
    await this.#endOf(client, client.query({ text: script, ...this.#answerTimeout }));
  }

  /**
   * Begins a transaction with `BEGIN …`. Until {@link commit}, everything runs on this connection and fails if it is
   * lost, because the rest of a transaction must not run without its beginning.
   */
  async begin(script: string): Promise<void> {
    await this.run(script);
    this.#isInTransaction = true;
  }

  /** Commits. After a fault, call {@link discard} instead, which rolls back. */
  async commit(): Promise<void> {
    await this.run("COMMIT");
    this.#isInTransaction = false;
  }

  async #connected(): Promise<Client> {
    await this.connect();
    if (this.#client === undefined) throw new Error("the connection was lost");
    return this.#client;
  }

  /** Waits for the statement that has just been sent. */
  async #endOf<Result>(client: Client, running: Promise<Result>): Promise<Result> {
    this.#doubt = undefined;
    this.#isRunning = true;
    try {
      const result = await running;
      if (this.#doubt === undefined) return result;
    } catch (fault) {
      // If its end is not known, the statement may still be running, and would go on in vain; `close` has ended it.
      if (sqlStateOf(fault) === undefined && !this.#isClosed) await this.#giveUp(client);
      throw fault;
    } finally {
      this.#isRunning = false;
    }
    throw new InDoubt(this.#doubt);
  }

  async #giveUp(client: Client): Promise<void> {
    await cancelStatement(client);
    if (this.shards.areThere && client.processID !== null)
      this.#stuck = [...this.#stuck, client.processID].slice(-stuckMax);
  }

  /**
   * Closes the connection, at once if a statement is running. The next statement opens another, to the next host if
   * there are several: a primary that was replaced may not know it, and wait in vain for standbys that follow another.
   */
  discard(): void {
    this.#isInTransaction = false;
    this.#host++;
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) void disconnect(client);
  }

  /** Closes the session for good, and has the server end the statement that it is running for it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endWait?.();
    const client = this.#client;
    if (client === undefined) return;
    if (this.#isRunning) await cancelStatement(client);
    await disconnect(client);
  }

  // A statement that is cancelled while it waits for its standbys succeeds, with a warning whose text is translated.
  // Citus passes SQLSTATE and text on, but not the routine; `57P01` comes when the waiting backend is ended. So any
  // warning of a worker may be this one, and the outcome of the statement is looked up.
  #read({ routine, code = "", message = "" }: Notice): void {
    if (routine === "SyncRepWaitForLSN") this.#doubt = "committed, but not on the synchronous standbys";
    const isOfWorker = routine === "DefaultCitusNoticeReceiver" && (code.startsWith("01") || code === "57P01");
    if (isOfWorker && !message.includes(collationHint)) {
      this.#doubt = "a worker warned, maybe that a commit is not on its synchronous standbys";
    }
  }

  #takeOf(connecting: Promise<Client>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#endWait = () => reject(closed());
      connecting.then((client) => this.#take(client)).then(resolve, reject);
    });
  }

  #take(client: Client): void {
    // A connection that is established after the close would keep the process alive.
    if (this.#isClosed) void disconnect(client);
    else this.#client = client;
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = undefined;
  }
}

function closed(): Error {
  return new Error("the session is closed");
}
