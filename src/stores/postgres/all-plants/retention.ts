import { setTimeout as sleep } from "node:timers/promises";
import { retentionIntervalMs } from "../../contract/retention.ts";
import { type OnUpkeep, reportDropped } from "../../contract/upkeep.ts";
import type { Dropped, StoreTables } from "../delete/store-tables.ts";
import { problemOf } from "../delete/problem.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

// Maximum number of rows per transaction. A slice takes some ten milliseconds and writes up to 5 MB to the WAL, which
// does not delay a standby. Smaller slices are slower, because each slice waits for the disk.
const sliceMax = 20_000;

// Maximum number of attempts to lock a table, and the interval between attempts in milliseconds. Deletions continue
// between attempts. If all attempts fail, the store reports the problem, and tries again at the next interval.
const lockAttemptsMax = 5;
const lockIntervalMs = 1_000;

/** Options for {@link Retention}. */
export interface RetentionOptions {
  readonly keptMs: number;
  /** Returns the tables with the records. */
  readonly tablesOn: (session: Session) => Promise<StoreTables>;
  /** Returns whether plants were deleted since a `performance.now()` time. If so, retention pauses. Default never. */
  readonly hasDeletedSince?: (timeMs: number) => boolean;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/** Drops expired deletion records. */
export class Retention {
  readonly #session: Session;
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  readonly #stopping = new AbortController();

  /** Drops records immediately, and then every {@link retentionIntervalMs}. The retention owns the session. */
  constructor(session: Session, options: RetentionOptions) {
    this.#session = session;
    this.#options = options;
    this.#dropping = this.#drop();
    this.#timer = setInterval(() => {
      this.#dropping = this.#dropping.then(() => this.#drop());
    }, retentionIntervalMs).unref();
  }

  /** Stops and cancels the running statement, even on a hung server. Resolves once all confirmed drops are reported. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    await this.#session.close();
    await this.#dropping;
  }

  async #drop(): Promise<void> {
    const { tablesOn, keptMs, onUpkeep } = this.#options;
    const session = this.#session;
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    let fromUs: number | undefined;
    try {
      // The loop ends when the session is closed, because a closed session rejects the task.
      for (let isMore = true; isMore;) {
        const sliceBegunMs = performance.now();
        const dropped = await this.#retryWhileLocked(async () => {
          const tables = await tablesOn(session);
          return await tables.dropOldRecords(session, keptMs, { max: sliceMax, fromUs });
        });
        fromUs = dropped.reachedTimeUs;
        ({ isMore } = dropped);
        count += dropped.count;
        await this.#pauseForDeletions(sliceBegunMs, dropped);
      }
    } catch (fault) {
      // Only reports the error, because a problem with the server also fails the next batch.
      if (!this.#stopping.signal.aborted) problem = problemOf(fault).text;
    }
    reportDropped(onUpkeep, count, begunMs, problem);
    // Closes the connection, which is not needed until the next interval.
    this.#session.discard();
  }

  async #pauseForDeletions(begunMs: number, { isMore }: Dropped): Promise<void> {
    const { tablesOn, hasDeletedSince } = this.#options;
    if (!isMore || hasDeletedSince?.(begunMs) !== true) return;
    const durationMs = performance.now() - begunMs;
    const { dropPause } = await tablesOn(this.#session);
    await sleep(durationMs * dropPause, undefined, { signal: this.#stopping.signal });
  }

  /** Retries a task while the table is locked. Each wait for a lock is short, because deletions queue behind the wait. */
  async #retryWhileLocked(task: () => Promise<Dropped>): Promise<Dropped> {
    for (let attempts = 1; ; attempts++) {
      try {
        return await task();
      } catch (fault) {
        if (sqlStateOf(fault) !== "55P03" || attempts === lockAttemptsMax) throw fault;
      }
      await sleep(lockIntervalMs, undefined, { signal: this.#stopping.signal });
    }
  }
}
