import { describe, expect, test } from "vitest";
import { freeChunk, isSingleUse, markSingleUse } from "../../src/exchange/index.ts";
import { nudgeScavenge } from "../../src/exchange/free-memory.ts";

const KiB = 1024;

describe("a chunk", () => {
  test("of 16 KiB is freed, and every view of it is empty", () => {
    const chunk = Buffer.alloc(16 * KiB, 1);
    const view = chunk.subarray(1);
    freeChunk(chunk);
    expect([chunk.byteLength, view.byteLength]).toStrictEqual([0, 0]);
  });

  test.each([
    { name: "in node's pool", chunk: () => Buffer.allocUnsafe(20 * KiB).fill(1) },
    { name: "behind other bytes", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(KiB) },
    { name: "in front of other bytes", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(0, 30 * KiB) },
    { name: "that threads share", chunk: () => new Uint8Array(new SharedArrayBuffer(16 * KiB)).fill(1) },
  ])("$name stays as it is", ({ chunk }) => {
    const bytes = chunk();
    const before = Uint8Array.from(bytes);
    freeChunk(bytes);
    expect(Buffer.compare(bytes, before)).toBe(0);
  });
});

test.each([
  { name: "that were said to be", bytes: () => markSingleUse(Buffer.alloc(64 * KiB)), want: true },
  {
    name: "at the end of such bytes",
    bytes: () => markSingleUse(Buffer.alloc(64 * KiB)).subarray(60 * KiB),
    want: true,
  },
  { name: "of which nobody said so", bytes: () => Buffer.alloc(64 * KiB), want: false },
  { name: "with others in their buffer", bytes: () => markSingleUse(Buffer.alloc(64 * KiB).subarray(1)), want: false },
])("bytes $name are for single use: $want", ({ bytes, want }) => {
  expect(isSingleUse(bytes())).toBe(want);
});

test("of the heap, 2 MiB are used up for a buffer of any length", () => {
  const before = process.memoryUsage().heapUsed;
  nudgeScavenge(256 * KiB * KiB);
  // What else is allocated meanwhile is a few kilobytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3 * KiB * KiB);
});
