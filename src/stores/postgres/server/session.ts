import type { Client, QueryArrayResult } from "pg";
import {
  abortStatement,
  cancelStatement,
  closeTimeoutMs,
  connectTo,
  disconnect,
  type SessionSettings,
  sessionSettings,
  type SessionTimeouts,
} from "./connect.ts";
import type { NamedStatement, NamedStatements } from "./named-statements.ts";
import { beginSql, briefTransaction, isRefusedBySetting } from "./pinned-settings.ts";
import type { Server } from "./server-url.ts";
import { sqlStateOf } from "./sql-state.ts";

// Minimum time for an attempt, in milliseconds. A shorter attempt could be cancelled with an unknown outcome.
const attemptMsMin = 500;

/** A statement, which the server prepares if it has a name. */
interface Statement {
  readonly text: string;
  readonly name?: string;
}

/** A row's columns as text, in the statement's order. */
export type Row = readonly (string | null)[];

type TextRows = QueryArrayResult<(string | null)[]>;

/** A connection to the server, opened on demand. Runs one statement at a time, each in one round trip. */
export class Session {
  /** The deadline for all work, on the `performance.now()` clock. Statements that exceed the deadline are cancelled. */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  readonly #server: Server;
  readonly #names: NamedStatements | undefined;
  readonly #responseTimeoutMs: number;
  readonly #settings: SessionSettings;
  #client: Client | undefined;
  /** Why the last commit may not be on the standbys. Undefined if the commit is durable. */
  #unconfirmed: string | undefined;
  #isInTransaction = false;
  #isRunning = false;
  #isClosed = false;
  #abortConnecting: (() => void) | undefined;

  /** @param names - tracks whether to prepare named statements. By default, no statement is prepared */
  constructor(server: Server, timeouts?: SessionTimeouts, names?: NamedStatements) {
    this.#server = server;
    this.#names = names;
    this.#responseTimeoutMs = timeouts?.responseTimeoutMs || Number.POSITIVE_INFINITY;
    this.#settings = sessionSettings(timeouts, names !== undefined);
  }

  get hasTime(): boolean {
    return this.remainingMs >= attemptMsMin;
  }

  get processId(): number | undefined {
    return this.#client?.processID ?? undefined;
  }

  /** The settings in the server's URL, except settings that the session overrides. */
  get requestedSettings(): ReadonlyMap<string, string> {
    return new Map([...this.#server.settings].filter(([name]) => !Object.hasOwn(this.#settings, name)));
  }

  /** Remaining time for a statement, in milliseconds. Excludes the time to cancel the statement. */
  get remainingMs(): number {
    return this.deadlineMs - performance.now() - closeTimeoutMs;
  }

  /** Connects, unless connected. Rejects if too little time remains. */
  async connect(): Promise<void> {
    if (this.#client !== undefined) return;
    await this.#connect();
    if (!this.hasTime) throw new Error("connecting timed out");
  }

  async #connect(): Promise<void> {
    if (this.#isInTransaction) throw new Error("the connection was lost during a transaction");
    if (this.#isClosed) throw closedError();
    const connecting = connectTo({
      settings: this.#settings,
      server: this.#server,
      deadlineMs: this.deadlineMs,
      onLost: (client) => this.#dropClient(client),
      onUnconfirmed: (problem) => (this.#unconfirmed = problem),
    });
    await new Promise<void>((resolve, reject) => {
      this.#abortConnecting = () => reject(closedError());
      const useClient = (client: Client): void => {
        // Closes a connection that is established after `close`, because the connection would keep the process alive.
        if (this.#isClosed) void disconnect(client);
        else this.#client = client;
      };
      connecting.then(useClient).then(resolve, reject);
    });
  }

  /**
   * Runs a statement. Another client of a pooler may have left a setting on the connection. If the server may have
   * refused the statement because of a setting, runs the statement again in a separate transaction.
   */
  async query(statement: string | NamedStatement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const named: Statement = typeof statement === "string" ? { text: statement } : statement;
    try {
      return (await this.#queryByName(named, values)).rows;
    } catch (fault) {
      if (this.#isInTransaction || !isRefusedBySetting(fault)) throw fault;
    }
    return await this.queryInTransaction(named.text, values);
  }

  async #queryByName({ name, text }: Statement, values: readonly unknown[]): Promise<TextRows> {
    if (name !== undefined && this.#names?.areKept === true) {
      try {
        return await this.#query({ name, text }, values);
      } catch (fault) {
        if (!this.#names.isRefused(fault)) throw fault;
      }
    }
    return await this.#query({ text }, values);
  }

  /** Runs a statement in a separate transaction, which starts with {@link beginSql}. */
  async queryInTransaction(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return await this.transact(briefTransaction, async () => (await this.#query({ text }, values)).rows);
  }

  /** Returns the number of changed rows. */
  async change(text: string, values: readonly unknown[]): Promise<number> {
    return (await this.#query({ text }, values)).rowCount ?? 0;
  }

  async #query(statement: Statement, values: readonly unknown[]): Promise<TextRows> {
    return await this.#runOn((client) => client.query({ ...statement, ...rowsAsText, values: [...values] }));
  }

  /** Runs statements without parameters in a single message. Returns the rows of all statements. */
  async run(script: string): Promise<readonly Row[]> {
    const results = await this.#runOn((client) => client.query<(string | null)[]>({ text: script, ...rowsAsText }));
    return [results].flat().flatMap(({ rows }) => rows);
  }

  /**
   * Begins a transaction with {@link beginSql}. Disconnects after an error. If the connection is lost during the
   * transaction, all statements fail until {@link discard}, because they must not run without the transaction.
   */
  async begin(characteristics: string): Promise<void> {
    try {
      await this.run(beginSql(characteristics));
    } catch (fault) {
      this.discard();
      throw fault;
    }
    this.#isInTransaction = true;
  }

  /**
   * Runs statements without parameters and results in a transaction. A single message contains the whole transaction,
   * so that the server commits even if this process hangs. Rolls back and disconnects after an error.
   */
  async runInTransaction(characteristics: string, script: string): Promise<void> {
    try {
      await this.run(`${beginSql(characteristics)}; ${script}; COMMIT`);
    } catch (fault) {
      this.discard();
      throw fault;
    }
  }

  /** Runs `work` in a transaction, and commits. After an error, rolls back, or disconnects if the rollback fails. */
  async transact<Result>(characteristics: string, work: () => Promise<Result>): Promise<Result> {
    await this.begin(characteristics);
    try {
      const result = await work();
      await this.commit();
      return result;
    } catch (fault) {
      await this.rollBack().catch(() => this.discard());
      throw fault;
    }
  }

  /** Commits the transaction. After an error, call {@link discard}. */
  async commit(): Promise<void> {
    await this.run("COMMIT");
    this.#isInTransaction = false;
  }

  /** Rolls the transaction back, and keeps the connection. */
  async rollBack(): Promise<void> {
    await this.run("ROLLBACK");
    this.#isInTransaction = false;
  }

  async #connected(): Promise<Client> {
    if (this.#client === undefined) await this.#connect();
    if (this.#client === undefined) throw new Error("the connection was lost");
    if (this.remainingMs <= 0) throw new Error("the deadline has passed");
    return this.#client;
  }

  async #runOn<Result>(start: (client: Client) => Promise<Result>): Promise<Result> {
    const client = await this.#connected();
    this.#unconfirmed = undefined;
    this.#isRunning = true;
    const limitMs = Math.min(this.#responseTimeoutMs, this.remainingMs);
    let cancelled: Promise<void> | undefined;
    const timer = Number.isFinite(limitMs)
      ? setTimeout(() => void (cancelled = abortStatement(client)), limitMs)
      : undefined;
    try {
      const result = await start(client);
      if (this.#unconfirmed === undefined) return result;
    } catch (fault) {
      // Rethrows the error if the server responded, or if `close` has cancelled the statement.
      if (sqlStateOf(fault) !== undefined || this.#isClosed) throw fault;
      if (cancelled !== undefined) throw new Error("the server does not respond", { cause: fault });
      await cancelStatement(client);
      throw fault;
    } finally {
      clearTimeout(timer);
      this.#isRunning = false;
      if (cancelled !== undefined) {
        // Closes the connection after a cancel request, because a late request could cancel the next statement.
        this.#dropClient(client);
        void cancelled.then(() => disconnect(client));
      }
    }
    // Has no SQLSTATE, like a lost connection, because the statement may or may not have succeeded.
    throw new Error(this.#unconfirmed);
  }

  /**
   * Closes the connection, immediately if a statement is running. The next statement opens another one.
   */
  discard(): void {
    this.#isInTransaction = false;
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) void disconnect(client);
  }

  /** Closes the session permanently, and asks the server to cancel the running statement. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abortConnecting?.();
    const client = this.#client;
    if (client === undefined) return;
    if (this.#isRunning) await cancelStatement(client);
    await disconnect(client);
  }

  #dropClient(client: Client): void {
    if (this.#client === client) this.#client = undefined;
  }
}

const rowsAsText = { rowMode: "array", types: { getTypeParser: () => String } } as const;

function closedError(): Error {
  return new Error("the session is closed");
}
