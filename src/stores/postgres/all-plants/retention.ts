import { setTimeout as sleep } from "node:timers/promises";
import { retentionIntervalMs } from "../../retention.ts";
import { type OnUpkeep, tellOfDropped } from "../../upkeep.ts";
import type { Dropped, Placement } from "../delete/placement.ts";
import { problemOf } from "../delete/problem.ts";
import type { Session } from "../server/session.ts";
import { sqlStateOf } from "../server/sql-state.ts";

// Rows per transaction: some ten milliseconds and up to five megabytes of the log, too few to hold up a standby. Of five
// thousand, half as many are dropped in a second, because each slice waits for the disk.
const sliceMax = 20_000;

// How often a lock on a table is tried to get, and the milliseconds in between, in which deletions go on. What is locked
// for longer is told, and tried again at the next interval.
const lockTriesMax = 5;
const lockIntervalMs = 1_000;

const nothing: Dropped = { count: 0, isMore: false };

/** Options of {@link Retention}. */
export interface RetentionOptions {
  /** How long records are kept, in milliseconds. */
  readonly keptMs: number;
  /** Returns where the records are now. Where that is not known yet, it finds out. */
  readonly placementOn: (session: Session) => Promise<Placement>;
  /**
   * Returns whether plants were deleted since a time on the clock of `performance.now()`: then retention gives way. By
   * default it never does.
   */
  readonly hasDeletedSince?: (timeMs: number) => boolean;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/** Keeps the deletion record from growing forever. */
export class Retention {
  readonly #session: Session;
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  readonly #stopping = new AbortController();

  /** Starts at once, and repeats every {@link retentionIntervalMs}. The retention owns the session. */
  constructor(session: Session, options: RetentionOptions) {
    this.#session = session;
    this.#options = options;
    this.#dropping = this.#drop();
    this.#timer = setInterval(() => {
      this.#dropping = this.#dropping.then(() => this.#drop());
    }, retentionIntervalMs).unref();
  }

  /**
   * Stops, and has the server end what it is running for that, whether or not it still responds. Resolves once it has
   * told of what was dropped, as far as the server has said so.
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
    // A dump that keeps days from being dropped keeps no row of others.
    const works = [
      async () => {
        await (await placementOn(session)).days?.make(session, keptMs);
        return nothing;
      },
      async () => (await placementOn(session)).days?.dropOld(session, keptMs) ?? nothing,
      async () => {
        const dropped = await (await placementOn(session)).dropOldRecords(session, keptMs, { max: sliceMax, fromUs });
        fromUs = dropped.reachedUs;
        return dropped;
      },
    ];
    for (const work of works) {
      try {
        // Once the session is closed, it rejects.
        for (let isMore = true; isMore;) {
          const sliceBegunMs = performance.now();
          const dropped = await this.#untilUnlocked(work);
          ({ isMore } = dropped);
          count += dropped.count;
          await this.#giveWay(sliceBegunMs, dropped);
        }
      } catch (fault) {
        // A fault of the server shows in the next batch, too, whose callers can be told.
        if (!this.#stopping.signal.aborted) problem = problemOf(fault).text;
      }
    }
    tellOfDropped(onUpkeep, { count, problem, begunMs });
    // Records expire slowly, which is not worth an open connection.
    this.#session.discard();
  }

  /** Leaves the server to deletions between two slices, if there were any since the first one began. */
  async #giveWay(begunMs: number, { isMore }: Dropped): Promise<void> {
    const { placementOn, hasDeletedSince } = this.#options;
    if (!isMore || hasDeletedSince?.(begunMs) !== true) return;
    const tookMs = performance.now() - begunMs;
    const { dropRest } = await placementOn(this.#session);
    await sleep(tookMs * dropRest, undefined, { signal: this.#stopping.signal });
  }

  /** Tries again what has met a lock on a table: it waits for that for a moment only, because deletions wait with it. */
  async #untilUnlocked(work: () => Promise<Dropped>): Promise<Dropped> {
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (fault) {
        if (sqlStateOf(fault) !== "55P03" || tries === lockTriesMax) throw fault;
      }
      await sleep(lockIntervalMs, undefined, { signal: this.#stopping.signal });
    }
  }
}
