import type { DatabaseSync } from "node:sqlite";

/** Runs `work` in one write transaction: all of it is durable when this returns, or none of it is done. */
export function runInTransaction<Result>(db: DatabaseSync, work: () => Result): Result {
  // IMMEDIATE: the write lock is taken before the first row is read, so no other process comes between.
  db.exec("BEGIN IMMEDIATE");
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
