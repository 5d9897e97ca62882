import type { DatabaseSync } from "node:sqlite";
import { isLocked } from "./problem.ts";

/** How long to wait for another process's lock, unless told otherwise: a batch of an import holds it for a hundredth of that. */
export const lockTimeoutMsDefault = 5_000;

/**
 * How often a connection that waits for the lock looks again, in milliseconds. SQLite's own waiting
 * soon looks only every 100 ms, and would hardly ever meet the moment between two batches of a busy
 * neighbour.
 */
export const lockPollMs = 2;

/** How long who writes batch after batch leaves the lock alone in between: others look twice in that time. */
export const lockGapMs: number = 2 * lockPollMs;

/**
 * Begins a write transaction, and waits for the lock if another process has it. The lock is taken before
 * the first row is read, so nobody comes between a look and a write.
 *
 * @throws what SQLite throws, after the time-out that the file is locked
 */
export function beginWrite(db: DatabaseSync, lockTimeoutMs: number = lockTimeoutMsDefault): void {
  const until = performance.now() + lockTimeoutMs;
  for (;;) {
    try {
      // Sleeps for lockPollMs by itself before it says that the file is locked.
      return db.exec("BEGIN IMMEDIATE");
    } catch (fault) {
      if (!isLocked(fault) || performance.now() > until) throw fault;
    }
  }
}

/** Runs `work` in one write transaction: all of it is durable when this returns, or none of it is done. */
export function runInTransaction<Result>(db: DatabaseSync, work: () => Result, lockTimeoutMs?: number): Result {
  beginWrite(db, lockTimeoutMs);
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (fault) {
    // A full disk or a failed write has already rolled back by itself.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw fault;
  }
}
