import { getHeapSpaceStatistics } from "node:v8";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { collectGarbage, scavenge } from "@protoport/testing/process";
import { type IdentifiedStream, OpenStreams, StreamTable } from "../../../src/engine/http2/stream-table.ts";

test("absenceOf remembers the last 1,024 streams that the server has reset", () => {
  const table = new StreamTable<IdentifiedStream>();
  for (let streamId = 1; streamId <= 2 * 1025; streamId += 2) {
    table.lastStreamId = streamId;
    table.rememberReset(streamId);
  }
  expect([1, 3, 2049].map((id) => table.absenceOf(id))).toStrictEqual(["closed", "reset-by-us", "reset-by-us"]);
});

// Many of 300 identifiers share their first slot, even in a table that has grown to 256 slots.
const ids = fc.integer({ min: 0, max: 300 }).map((n) => 2 * n + 1);

test("OpenStreams finds the open streams after any additions and deletions", () =>
  fc.assert(
    fc.property(fc.array(ids, { maxLength: 200 }), (toggled) => {
      const streams = new OpenStreams<IdentifiedStream>();
      const expected = new Map<number, IdentifiedStream>();
      const isExpected = (id: number): boolean => streams.get(id) === expected.get(id);
      for (const id of toggled) {
        const stream = { id };
        if (expected.delete(id)) streams.delete(id);
        else {
          streams.add(stream);
          expected.set(id, stream);
        }
        expect([streams.size, toggled.filter((each) => !isExpected(each))]).toStrictEqual([expected.size, []]);
      }
      expect([...streams.values()]).toStrictEqual([...expected.values()].toSorted((a, b) => a.id - b.id));
    }),
  ));

test("OpenStreams ignores the deletion of an unknown identifier", () => {
  const streams = new OpenStreams<IdentifiedStream>();
  streams.add({ id: 1 });
  streams.delete(65);
  expect([streams.size, streams.get(1)]).toStrictEqual([1, { id: 1 }]);
});

test("values() skips streams that are deleted during the iteration", () => {
  const streams = new OpenStreams<IdentifiedStream>();
  for (const id of [7, 3, 5, 1]) streams.add({ id });
  const seen: number[] = [];
  for (const { id } of streams.values()) {
    seen.push(id);
    streams.delete(id + 2);
  }
  expect(seen).toStrictEqual([1, 5]);
});

test("deleted streams are not promoted to the old generation", () => {
  const streams = new OpenStreams<IdentifiedStream & { readonly state: readonly number[] }>();
  const open = (id: number): void => streams.add({ id, state: Array.from({ length: 128 }, () => id) });
  open(1);
  collectGarbage();
  const before = oldSpaceBytes();
  for (let id = 3; id < 2000; id += 2) {
    open(id);
    streams.delete(id - 2);
  }
  // An object that survives two scavenges is promoted.
  scavenge();
  scavenge();
  // The deleted streams take more than 1,000,000 bytes.
  expect(oldSpaceBytes() - before).toBeLessThan(200_000);
});

function oldSpaceBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? Number.NaN;
}
