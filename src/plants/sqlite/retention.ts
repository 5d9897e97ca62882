import type { DatabaseSync } from "node:sqlite";
import { runInTransaction } from "./transaction.ts";

// Rows. A few milliseconds, in which no deletion is committed.
const sliceMax = 1_000n;

/**
 * Drops the oldest deletion records from before a moment, one short transaction a call, and says
 * whether there may be more.
 *
 * The newest record stays in any case: a record's `seq` is one more than the newest's, and an import
 * that runs relies on it that no `seq` is given twice.
 */
export function prepareDropOldDeletions(db: DatabaseSync): (before: Date) => boolean {
  const drop = db.prepare(`
    DELETE FROM deletions WHERE seq IN (
      SELECT seq FROM deletions
      WHERE deleted_at < ? AND seq < (SELECT max(seq) FROM deletions)
      ORDER BY deleted_at LIMIT ${sliceMax})`);
  return (before) => runInTransaction(db, () => drop.run(before.getTime()).changes === sliceMax);
}
