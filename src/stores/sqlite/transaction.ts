import type { DatabaseSync } from "node:sqlite";
import { isLocked } from "./problem.ts";

/** The default timeout for another process's lock, in milliseconds: 100 times as long as an import holds it. */
export const lockTimeoutMsDefault = 5_000;

/**
 * How often a connection that waits for the lock retries, in milliseconds. SQLite's own busy handler soon backs off to
 * 100 ms, and would rarely get the lock between two batches of another process.
 */
export const lockPollMs = 2;

/** How long an import releases the lock between two batches, in milliseconds: long enough for others to retry twice. */
export const lockGapMs: number = 2 * lockPollMs;

/**
 * Begins a write transaction, and waits if another process holds the lock. The lock is taken before the first row is
 * read, so nothing can change between a read and a write.
 *
 * @throws SQLite's error; after the timeout, the error that the file is locked
 */
export function beginWrite(db: DatabaseSync, lockTimeoutMs?: number): void {
  untilUnlocked(() => db.exec("BEGIN IMMEDIATE"), lockTimeoutMs);
}

/** Retries `run` as long as another process holds the lock. Throws as {@link beginWrite} does. */
export function untilUnlocked(run: () => void, lockTimeoutMs: number = lockTimeoutMsDefault): void {
  const deadlineMs = performance.now() + lockTimeoutMs;
  for (;;) {
    const attemptedAt = performance.now();
    try {
      return run();
    } catch (fault) {
      const now = performance.now();
      if (!isLocked(fault) || now > deadlineMs) throw fault;
      // SQLite has usually slept before it reports the lock, but it does not sleep if that could cause a deadlock.
      if (now - attemptedAt < lockPollMs) Atomics.wait(alarm, 0, 0, lockPollMs);
    }
  }
}

const alarm = new Int32Array(new SharedArrayBuffer(4));

/** Runs `work` in one write transaction. When it returns, everything is durable. When it throws, nothing was done. */
export function runInTransaction<Result>(db: DatabaseSync, work: () => Result, lockTimeoutMs?: number): Result {
  beginWrite(db, lockTimeoutMs);
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (fault) {
    // After a full disk or a failed write SQLite has already rolled back.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw fault;
  }
}
