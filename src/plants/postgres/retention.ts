import { retentionIntervalMs } from "../retention.ts";
import type { Session } from "./session.ts";

// Rows. A few milliseconds, and a transaction that no standby notices.
const sliceMax = 1_000;

/**
 * Drops the oldest deletion records from before a moment, one short transaction a call, and says
 * whether there may be more. Processes that do it at the same time take different records.
 */
export async function dropOldDeletions(session: Session, before: Date): Promise<boolean> {
  const dropped = await session.query(
    `DELETE FROM deletions WHERE seq = ANY(ARRAY(
       SELECT seq FROM deletions WHERE deleted_at < $1 ORDER BY deleted_at LIMIT ${sliceMax} FOR UPDATE SKIP LOCKED))
     RETURNING 1`,
    [before.toISOString()],
  );
  return dropped.length === sliceMax;
}

/** Keeps the deletion record from growing for ever, beside the deletions. */
export class Retention {
  readonly #session: Session;
  readonly #keptMs: number;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  #isStopped = false;

  /** Starts at once, and looks again from time to time. It owns the session. */
  constructor(session: Session, keptMs: number) {
    this.#session = session;
    this.#keptMs = keptMs;
    this.#dropping = this.#drop();
    this.#timer = setInterval(() => {
      this.#dropping = this.#dropping.then(() => this.#drop());
    }, retentionIntervalMs).unref();
  }

  /** Resolves once nothing is dropped any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#dropping;
  }

  async #drop(): Promise<void> {
    try {
      let isMore = true;
      while (isMore && !this.#isStopped)
        isMore = await dropOldDeletions(this.#session, new Date(Date.now() - this.#keptMs));
    } catch {
      // What is wrong with the server shows in the next batch, which has somebody to tell it to.
    }
    // Records grow old slowly: no connection is kept for them.
    this.#session.discard();
  }
}
