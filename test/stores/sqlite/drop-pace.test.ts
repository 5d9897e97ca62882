import { expect, test } from "vitest";
import { DropPace } from "../../../src/stores/sqlite/drop-pace.ts";

/** A slice of 10 ms, and the deletions before it; `dueMs` is zero while there is more. */
interface Slice {
  readonly deleted?: readonly number[];
  readonly dueMs?: number;
}

test.each<[name: string, slices: readonly Slice[], waitMs: number, deletedThen?: number]>([
  ["at once beside no deletion", [{}], 0],
  ["after a rest beside a deletion", [{ deleted: [1] }], 90],
  ["at once when none came since the rest", [{ deleted: [1] }, {}], 0],
  ["not before it is due once nothing is left", [{ deleted: [1], dueMs: 500 }], 500],
  ["after a rest, for fewer deletions than a slice has", [{ deleted: [1] }], 90, 799],
  ["at once where deletions add as many", [{ deleted: [1] }], -Infinity, 800],
  ["after a rest for those of a time with nothing to drop", [{ dueMs: 500 }, { deleted: [5_000] }], 90],
  ["at once when none came since, however many were before", [{}, { deleted: [400] }, {}], 0, 799],
  ["at once until as many have been dropped", [{}, { deleted: [800, 800] }], -Infinity],
  ["after a rest once as many have been dropped", [{}, { deleted: [800] }], 90],
  [
    "not before it is due, whatever is deleted once nothing is left",
    [{}, { deleted: [5_000], dueMs: 500 }],
    500,
    5_000,
  ],
])("the next slice is dropped %s", (_, slices, waitMs, deletedThen) => {
  const pace = new DropPace();
  let nowMs = 1_000;
  for (const { deleted = [], dueMs = 0 } of slices) {
    for (const count of deleted) pace.recordDeletions(count);
    nowMs += 10;
    pace.recordSlice(10, dueMs, nowMs);
  }
  if (deletedThen !== undefined) pace.recordDeletions(deletedThen);
  expect(pace.nextMs - nowMs).toBe(waitMs);
});
