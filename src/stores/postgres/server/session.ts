import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, QueryArrayResult } from "pg";
import type { StoreConnections } from "../../../service/index.ts";
import {
  cancelStatement,
  closeTimeoutMs,
  connectTo,
  destroySoon,
  disconnect,
  isWithinStatement,
  sqlStateOf,
  unconfirmedBy,
} from "./connect.ts";
import { beginSql, briefTransaction, hiddenRows } from "./pinned-settings.ts";
import type { PostgresServer } from "./server-url.ts";

// Minimum time for an attempt, in milliseconds. A shorter attempt could be cancelled with an unknown outcome.
const minAttemptMs = 500;

/** A session's timeouts, in milliseconds. */
export interface SessionTimeouts {
  readonly lockTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** Timeout for a response, after which the connection is closed. Used if the server does not cancel the statement. */
  readonly responseTimeoutMs: number;
}

// For commands, which may run long. 0 overrides the role's timeouts, which may be meant for deletions.
const unlimited: SessionTimeouts = { lockTimeoutMs: 0, statementTimeoutMs: 0, responseTimeoutMs: Infinity };

/** A statement, which the server prepares if it has a name. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

/** The prefix for statement and cursor names, for operators who query `pg_prepared_statements`. */
export const namePrefix = "plantstore_";

/** Names a statement by a hash of its text, so that no statement of another pooler client has the same name. */
export function nameStatement(text: string): Statement {
  return { name: `${namePrefix}${createHash("sha256").update(text).digest("base64url")}`, text };
}

/**
 * Whether a store's connections keep prepared statements. For a single deletion, prepared statements save more than half
 * of the server's work. PgBouncer before 1.21, or with `max_prepared_statements = 0`, does not keep prepared statements.
 * After the first error for a prepared statement, the store prepares no more statements.
 */
interface PreparedStatements {
  areKept: boolean;
}

/** A row's columns as text, in the statement's order. */
export type TextRow = readonly (string | null)[];

const rowsAsText = { rowMode: "array", types: { getTypeParser: () => String } } as const;

// A plan that was cached for an empty table would use sequential scans, even for millions of rows later. JIT is off,
// because the huge cost estimates of disabled plan types would trigger compilation.
const cachedPlanSettings = { enable_seqscan: "off", jit: "off", plan_cache_mode: "force_generic_plan" };

/** A connection to the server, opened on demand. Runs one statement at a time, each in one round trip. */
export class Session {
  /** The deadline for all work, on the `performance.now()` clock. Statements that exceed the deadline are cancelled. */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  readonly #server: PostgresServer;
  readonly #prepared: PreparedStatements | undefined;
  readonly #timeouts: SessionTimeouts;
  readonly #settings: Readonly<Record<string, string | number>>;
  #client: Client | undefined;
  /** Why the last commit may not be on the standbys. Undefined if the commit is durable. */
  #unconfirmed: string | undefined;
  #isInTransaction = false;
  #isRunning = false;
  #isClosed = false;
  #abortConnecting: (() => void) | undefined;

  /**
   * @param timeouts - by default, nothing times out
   * @param prepared - whether to prepare named statements. By default, no statement is prepared
   */
  constructor(server: PostgresServer, timeouts: SessionTimeouts = unlimited, prepared?: PreparedStatements) {
    this.#server = server;
    this.#prepared = prepared;
    this.#timeouts = timeouts;
    this.#settings = {
      // The level includes the warning that a commit is not on the standbys.
      client_min_messages: "warning",
      // With this setting, a statement fails (42501) if a policy would hide rows.
      row_security: "off",
      // If passed as a client option, node-postgres would not send timeout 0.
      lock_timeout: timeouts.lockTimeoutMs,
      statement_timeout: timeouts.statementTimeoutMs,
      ...(prepared && cachedPlanSettings),
    };
  }

  get hasTime(): boolean {
    return this.remainingMs >= minAttemptMs;
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

  async #connect(): Promise<Client> {
    if (this.#isInTransaction) throw new Error("the connection was lost during a transaction");
    const { promise, resolve, reject } = Promise.withResolvers<Client>();
    this.#abortConnecting = () => reject(new Error("the session is closed"));
    if (this.#isClosed) this.#abortConnecting();
    else
      connectTo(this.#server, this.#settings, this.deadlineMs).then((client) => {
        // Closes a connection that is established after `close`, because the connection would keep the process alive.
        if (this.#isClosed) return void disconnect(client);
        // After an unexpected message, node-postgres would keep the connection open.
        client.on("error", () => {
          this.#dropClient(client);
          client.connection.stream.destroy();
        });
        client.on("notice", (notice) => (this.#unconfirmed ??= unconfirmedBy(notice)));
        resolve((this.#client = client));
      }, reject);
    return await promise;
  }

  /**
   * Runs a statement. Another client of a pooler may have left a setting on the connection. If the server may have
   * refused the statement because of a setting, runs the statement again in a separate transaction.
   */
  async query(statement: string | Statement, values: readonly unknown[] = []): Promise<readonly TextRow[]> {
    const { name, text } = typeof statement === "string" ? { text: statement } : statement;
    const prepared = name !== undefined && this.#prepared?.areKept === true ? this.#prepared : undefined;
    try {
      return (await this.#query(prepared && name !== undefined ? { name, text } : { text }, values)).rows;
    } catch (fault) {
      if (prepared !== undefined && isNameRefused(fault)) prepared.areKept = false;
      else if (this.#isInTransaction || !isRefusedBySetting(fault)) throw fault;
      else return await this.transact(briefTransaction, () => this.query(text, values));
    }
    return await this.query(text, values);
  }

  /** Returns the number of changed rows. */
  async change(text: string, values: readonly unknown[]): Promise<number> {
    return (await this.#query({ text }, values)).rowCount ?? 0;
  }

  #query(statement: Statement, values: readonly unknown[]): Promise<QueryArrayResult<(string | null)[]>> {
    return this.#runOn((client) => client.query({ ...statement, ...rowsAsText, values: [...values] }));
  }

  /** Runs statements without parameters in a single message. Returns the rows of all statements. */
  async run(script: string): Promise<readonly TextRow[]> {
    const results = await this.#runOn((client) => client.query<(string | null)[]>({ text: script, ...rowsAsText }));
    return [results].flat().flatMap(({ rows }) => rows);
  }

  /** Runs statements like {@link run}. @throws Error without a SQLSTATE for the response to another statement */
  async runChecked(script: string): Promise<readonly TextRow[]> {
    const token = randomUUID();
    const rows = await this.run(`${script}; SELECT '${token}'`);
    if (rows.at(-1)?.[0] !== token) throw otherResponse();
    return rows.slice(0, -1);
  }

  /**
   * Begins a transaction with {@link beginSql}. After an error, rolls back, or disconnects if the rollback fails. If the
   * connection is lost during the transaction, all statements fail until {@link discard}, because they must not run
   * without the transaction.
   */
  async begin(characteristics: string): Promise<void> {
    const begun = this.runChecked(beginSql(characteristics));
    await begun.finally(() => (this.#isInTransaction = true)).catch((fault) => this.#abort(fault));
  }

  /** Runs `work` in a transaction, and commits. After an error, rolls back, or disconnects if the rollback fails. */
  async transact<Result>(characteristics: string, work: () => Promise<Result>): Promise<Result> {
    await this.begin(characteristics);
    try {
      const result = await work();
      await this.commit();
      return result;
    } catch (fault) {
      return await this.#abort(fault);
    }
  }

  async #abort(fault: unknown): Promise<never> {
    await this.rollBack().catch(() => this.discard());
    throw fault;
  }

  /** Commits the transaction. After an error, call {@link rollBack} or {@link discard}. */
  async commit(): Promise<void> {
    const { command } = await this.#query({ text: "COMMIT" }, []);
    if (command !== "COMMIT") {
      this.discard();
      throw otherResponse();
    }
    this.#isInTransaction = false;
  }

  /** Rolls the transaction back, and keeps the connection. Does nothing after {@link discard}. */
  async rollBack(): Promise<void> {
    if (!this.#isInTransaction) return;
    const { command } = await this.#query({ text: "ROLLBACK" }, []);
    if (command !== "ROLLBACK") this.discard();
    this.#isInTransaction = false;
  }

  async #runOn<Result>(start: (client: Client) => Promise<Result>): Promise<Result> {
    const client = this.#client ?? (await this.#connect());
    const limitMs = Math.min(this.#timeouts.responseTimeoutMs, this.remainingMs);
    if (limitMs <= 0) throw new Error("the deadline has passed");
    this.#unconfirmed = undefined;
    this.#isRunning = true;
    let cancelled: Promise<void> | undefined;
    const cancel = (): void => {
      destroySoon(client);
      cancelled = cancelStatement(client);
    };
    const timer = Number.isFinite(limitMs) ? setTimeout(cancel, limitMs) : undefined;
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

  /** Closes the connection, immediately if a statement is running. The next statement opens another one. */
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

/**
 * Returns the error for a response to another statement, which a pooler may send after a cancellation. Like the error of
 * a lost connection, it has no SQLSTATE, because the statement may have been executed.
 */
export const otherResponse = (): Error =>
  new Error("received the response to another statement: check the connection pooler");

/** Whether the server has refused a prepared statement, which has no effect. */
function isNameRefused(fault: unknown): boolean {
  if (!(fault instanceof Error) || isWithinStatement(fault)) return false;
  // A table change has altered the result, the prepared statement does not exist (26000), or exists already (42P05).
  const isStale = "routine" in fault && fault.routine === "RevalidateCachedQuery";
  return isStale || /^(?:26000|42P05)$/.test(sqlStateOf(fault) ?? "");
}

/** Whether the server may have refused a statement because of a setting. A refused statement has no effect. */
function isRefusedBySetting(fault: unknown): boolean {
  const state = sqlStateOf(fault);
  return state === "25006" || state === "42501" || (state === "42704" && String(fault).includes(hiddenRows));
}

/** A pool that opens sessions on demand and keeps sessions until it is closed. One caller at a time uses a session. */
export class SessionPool {
  readonly #open: () => Session;
  /** All open sessions, whether idle or in use. */
  readonly #sessions: Session[] = [];
  readonly #idle: Session[] = [];

  constructor(open: () => Session) {
    this.#open = open;
  }

  get connections(): StoreConnections {
    return { used: this.#sessions.length - this.#idle.length, idle: this.#idle.length };
  }

  /** Runs `work` with a session. The session's work has a deadline on the `performance.now()` clock. */
  async use<Result>(deadlineMs: number, work: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#idle.pop() ?? this.#open();
    if (!this.#sessions.includes(session)) this.#sessions.push(session);
    session.deadlineMs = deadlineMs;
    try {
      return await work(session);
    } finally {
      this.#idle.push(session);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()));
  }
}

/** The wait before the next attempt, in milliseconds. Full jitter keeps replicas from retrying at the same time. */
export function backoffMs(attempts: number): number {
  // From 5 ms, for a deadlock's victim, to a second, for a starting server.
  return Math.random() * Math.min(1_000, 5 * 2 ** attempts);
}

/** How long an operator's command retries after the first error, in milliseconds. */
export const retryForMs = 10_000;

/**
 * Runs `work` for an operator's command, and retries `work` after transient errors, for `forMs` after the first error.
 * By default, serialization failures (40001) and deadlocks (40P01) are transient.
 *
 * @param work - must leave no transaction open, and must be idempotent
 */
export async function retryTransientErrors<Result>(
  session: Session,
  work: () => Promise<Result>,
  transient: RegExp = /^(?:40001|40P01)$/,
  forMs: number = retryForMs,
): Promise<Result> {
  let endMs: number | undefined;
  for (let attempts = 0; ; attempts++) {
    try {
      return await work();
    } catch (fault) {
      // Closing the connection rolls the transaction back.
      session.discard();
      endMs ??= performance.now() + forMs;
      if (!transient.test(sqlStateOf(fault) ?? "") || performance.now() >= endMs) throw fault;
    }
    await sleep(backoffMs(attempts));
  }
}
