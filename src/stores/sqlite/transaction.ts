import type { DatabaseSync } from "node:sqlite";
import { isLocked } from "./problem.ts";

/** Default timeout for another process's lock, in milliseconds. An import holds the lock for about 50 ms. */
export const lockTimeoutMsDefault = 5_000;

/**
 * Interval between attempts to take the lock, in milliseconds. SQLite's busy handler soon backs off to 100 ms, and
 * would rarely get the lock between two batches of another process.
 */
export const lockPollMs = 2;

/** How long an import releases the lock between two batches, in milliseconds. Other connections can retry twice. */
export const lockGapMs: number = 2 * lockPollMs;

const alarm = new Int32Array(new SharedArrayBuffer(4));

/** Waits for the write lock and begins a transaction, in which no row changes after a read. @throws SQLite's error */
export function beginWrite(db: DatabaseSync, lockTimeoutMs?: number): void {
  retryWhileLocked(() => db.exec("BEGIN IMMEDIATE"), lockTimeoutMs);
}

/** Retries `run` while another process holds the lock. Throws the same errors as {@link beginWrite}. */
export function retryWhileLocked(run: () => void, lockTimeoutMs: number = lockTimeoutMsDefault): void {
  const deadlineMs = performance.now() + lockTimeoutMs;
  for (;;) {
    const attemptedAt = performance.now();
    try {
      return run();
    } catch (fault) {
      const now = performance.now();
      if (!isLocked(fault) || now > deadlineMs) throw fault;
      // SQLite usually sleeps before it reports the lock, but does not sleep if sleeping could cause a deadlock.
      if (now - attemptedAt < lockPollMs) Atomics.wait(alarm, 0, 0, lockPollMs);
    }
  }
}

/** Runs `work` in one write transaction. The changes are durable on return, and are rolled back after an error. */
export function runInTransaction<Result>(db: DatabaseSync, work: () => Result, lockTimeoutMs?: number): Result {
  beginWrite(db, lockTimeoutMs);
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (fault) {
    // After a full disk or a failed write, SQLite has already rolled back.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw fault;
  }
}
