import type { DatabaseSync } from "node:sqlite";
import { retentionIntervalMs, type OnUpkeep, reportDropped } from "../contract/store-options.ts";
import { fileProblemOf } from "./problem.ts";
import { runInTransaction } from "./transaction.ts";

/** Maximum number of records per transaction. A transaction takes 2 ms, and deletions wait for the transaction. */
const maxSliceRows = 1_000;

// Number of idempotency keys that are checked per dropped record. When the scan reaches a page, 25 % of the page's keys
// are expired, so one page write drops several keys. On average, 12.5 % of all keys are expired.
const keysPerRecord = 4;

// SQLite sorts a blob after all text.
const afterAllKeys = new Uint8Array();

/**
 * Prepares a function that drops the oldest records, older than `keptMs`, in one short transaction, at `nowMs` since the
 * epoch. It returns the milliseconds until the next call is due, and does not throw. Calls `onUpkeep` when no expired
 * records remain, and after an error. Keeps the newest record, because imports need the `seq` that SQLite derives of it.
 */
export function prepareRetention(db: DatabaseSync, keptMs: number, onUpkeep: OnUpkeep): (nowMs: number) => number {
  let count = 0;
  let begunMs = 0;
  const drop = db.prepare(`
    DELETE FROM deletions WHERE seq IN (
      SELECT seq FROM deletions
      WHERE deleted_at < ? AND seq < (SELECT max(seq) FROM deletions)
      ORDER BY deleted_at LIMIT ${maxSliceRows})`);
  const sweepKeys = prepareKeySweep(db);
  return (nowMs) => {
    if (count === 0) begunMs = performance.now();
    let problem: string | undefined;
    try {
      const changes = runInTransaction(db, () => {
        const dropped = Number(drop.run(nowMs - keptMs).changes);
        if (dropped > 0) sweepKeys(dropped);
        return dropped;
      });
      count += changes;
      if (changes === maxSliceRows) return 0;
    } catch (fault) {
      // Only reports the error, because a problem with the file also fails the next batch.
      problem = fileProblemOf(fault).text;
    }
    reportDropped(onUpkeep, count, begunMs, problem);
    count = 0;
    return retentionIntervalMs;
  };
}

// Prepares the function that drops idempotency keys without a record. Call the function with the number of dropped
// records, in the same transaction. The function scans all keys in order, one slice per call, and then starts again, so
// keys may be dropped late. A key older than the oldest record has no record, even if the clock jumps.
function prepareKeySweep(db: DatabaseSync): (records: number) => void {
  const lastEnd = db.prepare("SELECT up_to FROM swept_keys");
  const nextEnd = db.prepare(`
    SELECT idempotency_key FROM idempotency_keys WHERE idempotency_key > ? ORDER BY idempotency_key LIMIT 1 OFFSET ?`);
  const oldestRecord = db.prepare("SELECT min(deleted_at) AS deleted_at FROM deletions");
  const drop = db.prepare(
    "DELETE FROM idempotency_keys WHERE idempotency_key > ? AND idempotency_key <= ? AND deleted_at < ?",
  );
  const saveProgress = db.prepare("UPDATE swept_keys SET up_to = ?");

  return (records) => {
    const begin = lastEnd.get()?.["up_to"] ?? "";
    const end = nextEnd.get(begin, records * keysPerRecord)?.["idempotency_key"];
    drop.run(begin, end ?? afterAllKeys, oldestRecord.get()?.["deleted_at"] ?? null);
    saveProgress.run(end ?? "");
  };
}
