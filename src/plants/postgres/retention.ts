import { retentionIntervalMs } from "../retention.ts";
import type { Session } from "./session.ts";

// Rows per transaction: a few milliseconds, and nothing that a standby notices.
const sliceMax = 1_000;

/**
 * Drops the oldest deletion records that are older than `keptMs` by the clock of the database, which has dated them. It
 * does so in one short transaction per call, and returns whether there may be more. Processes that do this at the same
 * time take different records.
 */
export async function dropOldDeletions(session: Session, keptMs: number): Promise<boolean> {
  const dropped = await session.query(
    `DELETE FROM deletions WHERE seq = ANY(ARRAY(
       SELECT seq FROM deletions WHERE deleted_at < now() - $1::interval ORDER BY deleted_at LIMIT ${sliceMax} FOR UPDATE SKIP LOCKED))
     RETURNING 1`,
    [`${keptMs} milliseconds`],
  );
  return dropped.length === sliceMax;
}

/** Keeps the deletion record from growing forever. */
export class Retention {
  readonly #session: Session;
  readonly #keptMs: number;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  #isStopped = false;

  /** Starts at once, and repeats at intervals. It owns the session. */
  constructor(session: Session, keptMs: number) {
    this.#session = session;
    this.#keptMs = keptMs;
    this.#dropping = this.#drop();
    this.#timer = setInterval(() => {
      this.#dropping = this.#dropping.then(() => this.#drop());
    }, retentionIntervalMs).unref();
  }

  /** Stops, and resolves once no records are being dropped. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#dropping;
  }

  async #drop(): Promise<void> {
    try {
      let isMore = true;
      while (isMore && !this.#isStopped) isMore = await dropOldDeletions(this.#session, this.#keptMs);
    } catch {
      // A fault of the server shows in the next batch, whose callers can be told.
    }
    // Records expire slowly: this is not worth an open connection.
    this.#session.discard();
  }
}
