import { expect, test } from "vitest";
import { DropPace } from "../../../src/stores/sqlite/drop-pace.ts";

/** A slice of 10 ms, and the deletions before it. `dueMs` is zero while expired records remain. */
interface Slice {
  readonly deleted?: readonly number[];
  readonly dueMs?: number;
}

test.each<[name: string, slices: readonly Slice[], waitMs: number, deletedThen?: number]>([
  ["immediately without concurrent deletions", [{}], 0],
  ["after a pause with a concurrent deletion", [{ deleted: [1] }], 90],
  ["immediately when there was no deletion since the last pause", [{ deleted: [1] }, {}], 0],
  ["at its due time if no expired records remain", [{ deleted: [1], dueMs: 500 }], 500],
  ["after a pause when a slice has more records than were added", [{ deleted: [1] }], 90, 799],
  ["immediately when deletions add as many records as a slice has", [{ deleted: [1] }], -Infinity, 800],
  ["after a pause despite deletions while nothing was expired", [{ dueMs: 500 }, { deleted: [5_000] }], 90],
  ["immediately without recent deletions, regardless of earlier ones", [{}, { deleted: [400] }, {}], 0, 799],
  ["immediately until as many have been dropped as were added", [{}, { deleted: [800, 800] }], -Infinity],
  ["after a pause when as many have been dropped as were added", [{}, { deleted: [800] }], 90],
  [
    "at its due time, regardless of deletions, if no expired records remain",
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
