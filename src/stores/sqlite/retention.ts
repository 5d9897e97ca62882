import type { DatabaseSync } from "node:sqlite";
import { retentionIntervalMs } from "../retention.ts";
import { type OnUpkeep, reportDropped } from "../upkeep.ts";
import { prepareKeySweep } from "./key-sweep.ts";
import { fileProblemOf } from "./problem.ts";
import { runInTransaction } from "./transaction.ts";

/** Records per transaction: 2 ms with the keys that are swept, during which no deletion is committed. */
export const sliceMax = 1_000;

/**
 * Prepares the function that drops expired deletion records: each call drops the oldest records that are older than
 * `keptMs` at `nowMs`, a time in milliseconds since the epoch, in one short transaction. It returns the milliseconds
 * until the next call is due, and does not throw. When no expired records remain, or after an error, it reports to
 * `onUpkeep`.
 *
 * The newest record is never dropped: the next `seq` is one more than its `seq`, and a running import requires that no
 * `seq` is used twice.
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
      // An error of the file also fails the next batch, whose callers are informed.
      problem = fileProblemOf(fault).text;
    }
    reportDropped(onUpkeep, { count, problem, begunMs });
    count = 0;
    return retentionIntervalMs;
  };
}
