import type { DatabaseSync } from "node:sqlite";
import { retentionIntervalMs } from "../retention.ts";
import { type OnUpkeep, reportDropped } from "../upkeep.ts";
import { prepareKeySweep } from "./key-sweep.ts";
import { fileProblemOf } from "./problem.ts";
import { runInTransaction } from "./transaction.ts";

/** Records per transaction. With the keys that are swept, it takes 2 ms, during which no deletion is committed. */
export const sliceMax = 1_000;

/**
 * Prepares the function that drops expired deletion records. Each call drops, in one short transaction, the oldest
 * records that are older than `keptMs` at `nowMs`, a time in milliseconds since the epoch. It returns the milliseconds
 * until the next call is due, and does not throw. It reports to `onUpkeep` when no expired records remain, and after an
 * error.
 *
 * The newest record is never dropped: SQLite derives the next `seq` from it, and a running import requires that no
 * `seq` is reused.
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
      // Only reported: if the file has a problem, the next batch of deletions fails too.
      problem = fileProblemOf(fault).text;
    }
    reportDropped(onUpkeep, { count, problem, begunMs });
    count = 0;
    return retentionIntervalMs;
  };
}
