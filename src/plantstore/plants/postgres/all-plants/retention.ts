import { retentionIntervalMs } from "../../retention.ts";
import { type OnUpkeep, tellOfDropped } from "../../upkeep.ts";
import type { Placement } from "../delete/placement.ts";
import { problemOf } from "../delete/problem.ts";
import type { Session } from "../server/session.ts";

// Rows per transaction: a few milliseconds, and too few to hold up a standby.
const sliceMax = 1_000;

/** Options of {@link Retention}. */
export interface RetentionOptions {
  /** How long records are kept, in milliseconds. */
  readonly keptMs: number;
  /** Returns where the records are now. */
  readonly placement: () => Placement;
  readonly onUpkeep?: OnUpkeep | undefined;
}

/** Keeps the deletion record from growing forever. */
export class Retention {
  readonly #session: Session;
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  #isStopped = false;

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
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#session.close();
    await this.#dropping;
  }

  async #drop(): Promise<void> {
    const { placement, keptMs, onUpkeep } = this.#options;
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    try {
      // Once the session is closed, it rejects.
      for (let isMore = true; isMore;) {
        const dropped = await placement().dropOldRecords(this.#session, keptMs, sliceMax);
        ({ isMore } = dropped);
        count += dropped.count;
      }
    } catch (fault) {
      // A fault of the server shows in the next batch, too, whose callers can be told.
      if (!this.#isStopped) problem = problemOf(fault).text;
    }
    tellOfDropped(onUpkeep, { count, problem, begunMs });
    // Records expire slowly, which is not worth an open connection.
    this.#session.discard();
  }
}
