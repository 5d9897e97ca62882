import type { Client, QueryArrayResult } from "pg";
import { readSettings } from "./asked-settings.ts";
import {
  cancelStatement,
  endTimeoutMs,
  ownOptions,
  type ConnectOptions,
  connectTo,
  cutShort,
  disconnect,
  type Notice,
  type SessionTimeouts,
} from "./connect.ts";
import { CopyIn } from "./copy-in.ts";
import type { NamedStatement, NamedStatements } from "./named-statements.ts";
import { beginSql, isRefusedBySetting, readCommitted } from "./pinned-settings.ts";
import type { Server } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

/**
 * The shortest time in which it is worth to attempt something, in milliseconds: several times as long as a statement
 * waits for a lock. One that has to be cut short may leave its outcome unknown.
 */
const attemptMsMin = 500;

/** The time that such an attempt needs with its end, in milliseconds. */
export const attemptTotalMs: number = attemptMsMin + endTimeoutMs;

// What an operator is told of a statement that was given up without an answer.
const silent = "the server does not respond, not even to a cancel request";
const goesOn = "the server accepted a cancel request, but the statement is still running; its disk or a standby may not respond";

/** The error of a statement that may not have come to what its answer says. */
export class InDoubt extends Error {}

/** The other servers to which a server may hand statements on, as the coordinator of Citus does. */
export interface Workers {
  /** Returns why a commit may not be on the standbys of a worker, by a notice; `undefined` for any other notice. */
  doubtOf(notice: Notice): string | undefined;
  /**
   * Takes note that a process of the server may still wait for a worker, although its statement was given up; `null`
   * for one that the server has not named.
   */
  mayWait(processId: number | null): void;
  /** Called with each new connection, to end such waits. Must not reject. */
  endWaits(session: Session): Promise<void>;
}

/** A row: its columns in the order of the statement, as text. */
export type Row = readonly (string | null)[];

/**
 * A single connection to the server, made when it is needed, which runs one statement at a time.
 *
 * A statement takes one round trip, with its text or by its name.
 */
export class Session {
  /**
   * When everything on this session is to have ended, on the clock of `performance.now()`: a statement that runs too
   * long is cut short before. By default there is no end. For the one that uses the session.
   */
  untilMs: number = Number.POSITIVE_INFINITY;
  readonly #server: Server;
  readonly #workers: Workers | undefined;
  readonly #names: NamedStatements | undefined;
  readonly #answerTimeoutMs: number;
  readonly #connectOptions: Omit<ConnectOptions, "mustBeWritable" | "untilMs">;
  /** The index of the host to try first, modulo the number of hosts. */
  #host = 0;
  #client: Client | undefined;
  /** Why the last commit may not be on its standbys. */
  #doubt: string | undefined;
  #isInTransaction = false;
  #isRunning = false;
  #isClosed = false;
  /** Ends the wait for the connection that is being established. */
  #endWait: (() => void) | undefined;

  /** @param names - whether statements that have a name are kept under it. By default none is */
  constructor(server: Server, timeouts?: SessionTimeouts, workers?: Workers, names?: NamedStatements) {
    this.#server = server;
    this.#workers = workers;
    this.#names = names;
    this.#answerTimeoutMs = timeouts?.answerTimeoutMs || Number.POSITIVE_INFINITY;
    this.#connectOptions = {
      timeouts,
      keepsPlans: names !== undefined,
      onLost: (client) => this.#forget(client),
      onNotice: (notice) => this.#read(notice),
    };
  }

  /** Whether there is time for an attempt, and to end it if it takes too long. */
  get hasTime(): boolean {
    return this.leftMs >= attemptMsMin;
  }

  /** The process of the server that is connected. */
  get processId(): number | undefined {
    return this.#client?.processID ?? undefined;
  }

  /** The settings that the URL of the server asks for, by name. */
  get settings(): ReadonlyMap<string, string> {
    return this.#server.settings;
  }

  /** Those of them that the session does not override. */
  get askedSettings(): ReadonlyMap<string, string> {
    const own = readSettings(ownOptions(this.#connectOptions));
    return new Map([...this.settings].filter(([name]) => !own.has(name)));
  }

  /** How long a statement that is sent now may run, in milliseconds: the rest of the time is for ending it. */
  get leftMs(): number {
    return this.untilMs - performance.now() - endTimeoutMs;
  }

  /**
   * Prepares an attempt: connects if there is no connection. Rejects with the error of the last host that was tried, or
   * if that has left too little time.
   */
  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    await this.#connect();
    if (!this.hasTime) throw new Error("connecting timed out");
  }

  async #connect(): Promise<void> {
    await this.#connectToAny();
    await this.#workers?.endWaits(this);
  }

  async #connectToAny(): Promise<void> {
    if (this.#isInTransaction) throw new Error("the connection was lost during a transaction");
    // Read in this order, and once: they may change from one connection to the next.
    const { hosts, mustBeWritable } = this.#server;
    const options = { ...this.#connectOptions, mustBeWritable, untilMs: this.untilMs };
    let fault: unknown = closed();
    for (let tried = 0; tried < hosts.length && !this.#isClosed; tried++) {
      // Without time for it, a host would be blamed that was not asked.
      if (tried > 0 && this.leftMs <= 0) break;
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

  /**
   * Runs a statement. {@link verdictOn} judges what it rejects with. One that the server may have refused for the sake of
   * what another client of a pooler has set is run again in a transaction of its own.
   */
  async query(statement: string | NamedStatement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    try {
      return await this.#queryByName(statement, values);
    } catch (fault) {
      if (this.#isInTransaction || !isRefusedBySetting(fault)) throw fault;
    }
    return await this.queryInTransaction(typeof statement === "string" ? statement : statement.text, values);
  }

  /** Runs a statement in a separate transaction, which starts with {@link beginSql}. */
  async queryInTransaction(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    await this.begin(readCommitted);
    try {
      const { rows } = await this.#query({ text }, values);
      await this.commit();
      return rows;
    } catch (fault) {
      await this.rollBack().catch(() => this.discard());
      throw fault;
    }
  }

  async #queryByName(statement: string | NamedStatement, values: readonly unknown[]): Promise<readonly Row[]> {
    if (typeof statement === "string") return (await this.#query({ text: statement }, values)).rows;
    if (this.#names?.areKept !== true) return (await this.#query({ text: statement.text }, values)).rows;
    try {
      return (await this.#query(statement, values)).rows;
    } catch (fault) {
      if (!this.#names.isRefused(fault)) throw fault;
      return (await this.#query({ text: statement.text }, values)).rows;
    }
  }

  /** Runs a statement that changes rows, and returns how many, which the server tells without returning them. */
  async change(text: string, values: readonly unknown[]): Promise<number> {
    return (await this.#query({ text }, values)).rowCount ?? 0;
  }

  async #query(
    statement: { readonly text: string; readonly name?: string },
    values: readonly unknown[],
  ): Promise<QueryArrayResult<(string | null)[]>> {
    const client = await this.#connected();
    const running = client.query<(string | null)[]>({
      ...statement,
      values: [...values],
      rowMode: "array",
      types: { getTypeParser: () => String },
    });
    return await this.#endOf(client, running);
  }

  /** Runs a `COPY … FROM STDIN` of these bytes, and returns the number of rows that the server has taken. */
  async copy(text: string, bytes: Buffer): Promise<number> {
    const client = await this.#connected();
    return await this.#endOf(client, client.query(new CopyIn(text, bytes)).ended);
  }

  /** Runs statements without parameters and results. */
  async run(script: string): Promise<void> {
    const client = await this.#connected();
    await this.#endOf(client, client.query(script));
  }

  /**
   * Begins a transaction as {@link beginSql} does. Until {@link commit}, everything runs on this connection and fails if
   * it is lost, because the rest of a transaction must not run without its beginning. A fault disconnects.
   */
  async begin(characteristics: string): Promise<void> {
    try {
      await this.run(beginSql(characteristics));
    } catch (fault) {
      // What was begun would still be open.
      this.#disconnect();
      throw fault;
    }
    this.#isInTransaction = true;
  }

  /**
   * Runs statements without parameters and results in a transaction that {@link begin} would begin, in one message: the
   * server commits even if this process hangs. A fault rolls it back, and disconnects.
   */
  async runInTransaction(characteristics: string, script: string): Promise<void> {
    try {
      await this.run(`${beginSql(characteristics)}; ${script}; COMMIT`);
    } catch (fault) {
      this.#disconnect();
      throw fault;
    }
  }

  /** Does work in a transaction that {@link begin} begins, and commits it. A fault rolls it back, and disconnects. */
  async transact<Result>(characteristics: string, work: () => Promise<Result>): Promise<Result> {
    await this.begin(characteristics);
    try {
      const result = await work();
      await this.commit();
      return result;
    } catch (fault) {
      this.discard();
      throw fault;
    }
  }

  /** Commits. After a fault, call {@link discard} instead, which rolls back. */
  async commit(): Promise<void> {
    await this.run("COMMIT");
    this.#isInTransaction = false;
  }

  /** Rolls back, and keeps the connection. */
  async rollBack(): Promise<void> {
    await this.run("ROLLBACK");
    this.#isInTransaction = false;
  }

  async #connected(): Promise<Client> {
    if (this.#client === undefined) await this.#connect();
    if (this.#client === undefined) throw new Error("the connection was lost");
    if (this.leftMs <= 0) throw new Error("the deadline has passed");
    return this.#client;
  }

  /** Waits for the statement that has just been sent. */
  async #endOf<Result>(client: Client, running: Promise<Result>): Promise<Result> {
    this.#doubt = undefined;
    this.#isRunning = true;
    const limitMs = Math.min(this.#answerTimeoutMs, this.leftMs);
    const cut: { isTaken?: Promise<boolean> } = {};
    const cutNow = (): void => void (cut.isTaken = cutShort(client));
    const timer = Number.isFinite(limitMs) ? setTimeout(cutNow, limitMs) : undefined;
    try {
      const result = await running;
      if (this.#doubt === undefined) return result;
    } catch (fault) {
      // `close` has ended it.
      if (sqlStateOf(fault) !== undefined || this.#isClosed) throw fault;
      // Its end is not known, so it may still be running, and would go on in vain.
      const isTaken = await (cut.isTaken ?? cancelStatement(client));
      if (cut.isTaken === undefined) this.#workers?.mayWait(client.processID);
      throw cut.isTaken === undefined ? fault : new Error(isTaken ? goesOn : silent, { cause: fault });
    } finally {
      clearTimeout(timer);
      this.#isRunning = false;
      if (cut.isTaken !== undefined) {
        // Whatever the server answers, a worker may still wait for its standby.
        this.#workers?.mayWait(client.processID);
        this.#letGoOf(client, cut.isTaken);
      }
    }
    throw new InDoubt(this.#doubt);
  }

  /** Gives up a connection: the request to end its statement could end the next one, if it comes late. */
  #letGoOf(client: Client, isTaken: Promise<boolean>): void {
    this.#forget(client);
    // No test can tell: it would be cut off a moment later, without a word to the server.
    void isTaken.then(() => disconnect(client));
  }

  /**
   * Closes the connection, at once if a statement is running. The next statement opens another, to the next host if
   * there are several: a primary that was replaced may not know it, and wait in vain for standbys that follow another.
   */
  discard(): void {
    this.#host++;
    this.#disconnect();
  }

  #disconnect(): void {
    this.#isInTransaction = false;
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
  #read(notice: Notice): void {
    if (notice.routine === "SyncRepWaitForLSN")
      this.#doubt = "committed, but not confirmed by its synchronous standbys";
    this.#doubt = this.#workers?.doubtOf(notice) ?? this.#doubt;
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
