import { retentionIntervalMs } from "../retention.ts";
import { type OnUpkeep, tellOfDropped } from "../upkeep.ts";
import { problemOf } from "./problem.ts";
import type { Session } from "./session.ts";

// Rows per transaction: a few milliseconds, and too few to hold up a standby.
const sliceMax = 1_000;

/** The records that one transaction has dropped. */
interface DroppedSlice {
  readonly count: number;
  /** Whether there may be more. */
  readonly isMore: boolean;
}

/**
 * Drops the oldest deletion records that are older than `keptMs` by the clock of the database, which has dated them, in
 * one short transaction. Returns how many, and whether there may be more. Processes that do this at the same time take
 * different records.
 */
export async function dropOldDeletions(session: Session, keptMs: number): Promise<DroppedSlice> {
  if (session.shards.areThere) return await dropOnWorkers(session, keptMs);
  const dropped = await session.query(
    `DELETE FROM deletions WHERE seq = ANY(ARRAY(
       SELECT seq FROM deletions WHERE deleted_at < now() - $1::interval
       ORDER BY deleted_at LIMIT ${sliceMax} FOR UPDATE SKIP LOCKED))
     RETURNING 1`,
    [`${keptMs} milliseconds`],
  );
  return { count: dropped.length, isMore: dropped.length === sliceMax };
}

/**
 * Does the same on Citus, which has no SKIP LOCKED across workers: processes that do so at once may wait for each
 * other.
 */
async function dropOnWorkers(session: Session, keptMs: number): Promise<DroppedSlice> {
  const old = await session.query(
    `SELECT plant_id, seq FROM deletions WHERE deleted_at < now() - $1::interval ORDER BY deleted_at LIMIT ${sliceMax}`,
    [`${keptMs} milliseconds`],
  );
  if (old.length === 0) return { count: 0, isMore: false };
  const [ids, seqs] = [0, 1].map((column) => `{${old.map((row) => row[column]).join()}}`);
  const dropped = await session.query(
    "DELETE FROM deletions WHERE plant_id = ANY($1::bigint[]) AND seq = ANY($2::bigint[]) RETURNING 1",
    [ids, seqs],
  );
  return { count: dropped.length, isMore: old.length === sliceMax };
}

/** Keeps the deletion record from growing forever. */
export class Retention {
  readonly #session: Session;
  readonly #keptMs: number;
  readonly #onUpkeep: OnUpkeep | undefined;
  readonly #timer: NodeJS.Timeout;
  #dropping: Promise<void>;
  #isStopped = false;

  /** Starts at once, and repeats every {@link retentionIntervalMs}. The retention owns the session. */
  constructor(session: Session, keptMs: number, onUpkeep?: OnUpkeep) {
    this.#session = session;
    this.#onUpkeep = onUpkeep;
    this.#keptMs = keptMs;
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
    const begunMs = performance.now();
    let count = 0;
    let problem: string | undefined;
    try {
      let isMore = true;
      while (isMore && !this.#isStopped) {
        const dropped = await dropOldDeletions(this.#session, this.#keptMs);
        ({ isMore } = dropped);
        count += dropped.count;
      }
    } catch (fault) {
      // A fault of the server shows in the next batch, too, whose callers can be told.
      if (!this.#isStopped) problem = problemOf(fault).text;
    }
    tellOfDropped(this.#onUpkeep, { count, problem, begunMs });
    // Records expire slowly, which is not worth an open connection.
    this.#session.discard();
  }
}
