import type { DatabaseSync } from "node:sqlite";
import { retentionIntervalMs } from "../contract/retention.ts";
import { type OnUpkeep, reportDropped } from "../contract/upkeep.ts";
import { fileProblemOf } from "./problem.ts";
import { runInTransaction } from "./transaction.ts";

/** Records per transaction. With the keys that are swept, it takes 2 ms, during which no deletion is committed. */
const sliceMax = 1_000;

// How many keys are checked for each dropped record. So a quarter of the keys are expired when the scan reaches them,
// and a page is written once for all its expired keys. On average, an eighth of the keys in the table are expired.
const keysPerRecord = 4;

// Blobs sort after all text.
const afterAllKeys = new Uint8Array();

/**
 * Prepares the function that drops expired deletion records. Each call drops, in one short transaction, the oldest
 * records that are older than `keptMs` at `nowMs`, a time in milliseconds since the epoch. The function returns the
 * milliseconds until the next call is due, and does not throw. The function reports to `onUpkeep` when no expired
 * records remain, and after an error.
 *
 * The newest record is kept. SQLite derives the next `seq` from it, and an import requires that none is reused.
 */
export function prepareRetention(db: DatabaseSync, keptMs: number, onUpkeep: OnUpkeep): (nowMs: number) => number {
  let count = 0;
  let begunMs = 0;
  const drop = db.prepare(`
    DELETE FROM deletions WHERE seq IN (
      SELECT seq FROM deletions
      WHERE deleted_at < ? AND seq < (SELECT max(seq) FROM deletions)
      ORDER BY deleted_at LIMIT ${sliceMax})`);
  const sweepKeys = prepareKeySweep(db);
  const dropSlice = (before: number): number => {
    const changes = Number(drop.run(before).changes);
    if (changes > 0) sweepKeys(changes);
    return changes;
  };
  return (nowMs) => {
    if (count === 0) begunMs = performance.now();
    let problem: string | undefined;
    try {
      const changes = runInTransaction(db, () => dropSlice(nowMs - keptMs));
      count += changes;
      if (changes === sliceMax) return 0;
    } catch (fault) {
      // Only reported. If the file has a problem, the next batch fails too.
      problem = fileProblemOf(fault).text;
    }
    reportDropped(onUpkeep, { count, problem, begunMs });
    count = 0;
    return retentionIntervalMs;
  };
}

/**
 * Prepares the function that drops the keys of dropped records. Call it in their transaction, with their number.
 *
 * The function scans all keys in order, one slice per call, and then starts again. Keys may be dropped late, because a
 * key without a record is ignored. Clock jumps do not matter, because a key that is older than the oldest record has no
 * record.
 */
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
