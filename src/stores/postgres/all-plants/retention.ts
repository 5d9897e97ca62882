import { setTimeout as sleep } from "node:timers/promises";
import { retentionIntervalMs } from "../../contract/retention.ts";
import { type OnUpkeep, reportDropped } from "../../contract/upkeep.ts";
import type { Placement } from "../delete/placement.ts";
import { problemOf } from "../delete/problem.ts";
import type { Session } from "../server/session.ts";

// Rows per transaction. A slice takes some ten milliseconds and writes up to five megabytes to the WAL, too little to
// delay a standby. With slices of five thousand rows, half as many rows are dropped per second, because each slice
// waits for the disk.
const sliceMax = 20_000;

/** Options for {@link Retention}. */
export interface RetentionOptions {
  readonly keptMs: number;
  /** Returns the records' placement, and determines it first if it is not known yet. */
  readonly placementOn: (session: Session) => Promise<Placement>;
  /**
   * Returns whether plants were deleted since a time on the `performance.now()` clock. If so, retention pauses. By
   * default it never pauses.
   */
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

  /** Starts immediately, and repeats every {@link retentionIntervalMs}. The retention owns the session. */
  constructor(session: Session, options: RetentionOptions) {
    this.#session = session;
    this.#options = options;
    this.#dropping = this.#drop();
    this.#timer = setInterval(() => {
      this.#dropping = this.#dropping.then(() => this.#drop());
    }, retentionIntervalMs).unref();
  }

  /**
   * Stops, and cancels the running statement, even if the server no longer responds. Resolves once the records whose
   * dropping the server has confirmed are reported.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    await this.#session.close();
    await this.#dropping;
  }

  async #drop(): Promise<void> {
    const { placementOn, keptMs, onUpkeep } = this.#options;
    const session = this.#session;
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    let fromUs: number | undefined;
    try {
      // The loop ends when the session is closed, because the next statement then rejects.
      for (let isMore = true; isMore;) {
        const sliceBegunMs = performance.now();
        const placement = await placementOn(session);
        const dropped = await placement.dropOldRecords(session, keptMs, { max: sliceMax, fromUs });
        ({ isMore, reachedTimeUs: fromUs } = dropped);
        count += dropped.count;
        if (isMore) await this.#pauseForDeletions(sliceBegunMs, placement);
      }
    } catch (fault) {
      // Only reported. If the server has a problem, the next batch of deletions fails too.
      if (!this.#stopping.signal.aborted) problem = problemOf(fault).text;
    }
    reportDropped(onUpkeep, { count, problem, begunMs });
    // Records expire slowly, so the connection is not kept open.
    this.#session.discard();
  }

  async #pauseForDeletions(begunMs: number, { dropPause }: Placement): Promise<void> {
    if (this.#options.hasDeletedSince?.(begunMs) !== true) return;
    const durationMs = performance.now() - begunMs;
    await sleep(durationMs * dropPause, undefined, { signal: this.#stopping.signal });
  }
}
