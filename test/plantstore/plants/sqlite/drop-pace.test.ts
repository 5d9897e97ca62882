import { expect, test } from "vitest";
import { DropPace } from "../../../../src/plantstore/plants/sqlite/drop-pace.ts";

/** A slice that took 10 ms, with what was deleted before it; `dueMs` is zero while there is more. */
interface Slice {
  readonly deleted?: readonly number[];
  readonly dueMs?: number;
}

test.each<{ name: string; slices: readonly Slice[]; deletedThen?: number; waitMs: number }>([
  { name: "at once beside no deletion", slices: [{}], waitMs: 0 },
  { name: "after a rest beside a deletion", slices: [{ deleted: [1] }], waitMs: 90 },
  { name: "at once when none came since the rest", slices: [{ deleted: [1] }, {}], waitMs: 0 },
  { name: "not before it is due once nothing is left", slices: [{ deleted: [1], dueMs: 500 }], waitMs: 500 },
  {
    name: "after a rest, for fewer deletions than a slice has",
    slices: [{ deleted: [1] }],
    deletedThen: 799,
    waitMs: 90,
  },
  { name: "at once where deletions add as many", slices: [{ deleted: [1] }], deletedThen: 800, waitMs: -Infinity },
  {
    name: "after a rest for those of a time with nothing to drop",
    slices: [{ dueMs: 500 }, { deleted: [5_000] }],
    waitMs: 90,
  },
  {
    name: "at once when none came since, however many were before",
    slices: [{}, { deleted: [400] }, {}],
    deletedThen: 799,
    waitMs: 0,
  },
  { name: "at once until as many have been dropped", slices: [{}, { deleted: [800, 800] }], waitMs: -Infinity },
  { name: "after a rest once as many have been dropped", slices: [{}, { deleted: [800] }], waitMs: 90 },
  {
    name: "not before it is due, whatever is deleted once nothing is left",
    slices: [{}, { deleted: [5_000], dueMs: 500 }],
    deletedThen: 5_000,
    waitMs: 500,
  },
])("the next slice is dropped $name", ({ slices, deletedThen, waitMs }) => {
  const pace = new DropPace();
  let nowMs = 1_000;
  for (const { deleted = [], dueMs = 0 } of slices) {
    for (const count of deleted) pace.deleted(count);
    nowMs += 10;
    pace.dropped(10, dueMs, nowMs);
  }
  if (deletedThen !== undefined) pace.deleted(deletedThen);
  expect(pace.nextMs - nowMs).toBe(waitMs);
});
