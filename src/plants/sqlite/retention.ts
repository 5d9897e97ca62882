import type { DatabaseSync } from "node:sqlite";
import { retentionIntervalMs } from "../retention.ts";
import { runInTransaction } from "./transaction.ts";

// Rows per transaction: a few milliseconds, during which no deletion is committed.
const sliceMax = 1_000n;

/**
 * Prepares the function that keeps the deletion record from growing forever: each call drops the oldest records that
 * are older than `keptMs` at `nowMs`, a time in milliseconds since the epoch, in one short transaction. It returns the
 * milliseconds until the next call is due, and does not throw.
 *
 * The newest record always stays: the next `seq` is one more than its `seq`, and a running import relies on no `seq`
 * being used twice.
 */
export function prepareRetention(db: DatabaseSync, keptMs: number): (nowMs: number) => number {
  const drop = db.prepare(`
    DELETE FROM deletions WHERE seq IN (
      SELECT seq FROM deletions
      WHERE deleted_at < ? AND seq < (SELECT max(seq) FROM deletions)
      ORDER BY deleted_at LIMIT ${sliceMax})`);
  return (nowMs) => {
    try {
      const { changes } = runInTransaction(db, () => drop.run(nowMs - keptMs));
      return changes === sliceMax ? 0 : retentionIntervalMs;
    } catch {
      // A fault of the file shows in the next batch, whose callers can be told.
      return retentionIntervalMs;
    }
  };
}
