import { describe, expect, test } from "vitest";
import { freeChunk, isSingleUse, markSingleUse } from "../../src/exchange/index.ts";
import { nudgeScavenge } from "../../src/exchange/free-memory.ts";

const KiB = 1024;

describe("a chunk", () => {
  test("of 16 KiB is freed, and every view of it becomes empty", () => {
    const chunk = Buffer.alloc(16 * KiB, 1);
    const view = chunk.subarray(1);
    freeChunk(chunk);
    expect([chunk.byteLength, view.byteLength]).toStrictEqual([0, 0]);
  });

  test.each([
    { name: "in node's pool", chunk: () => Buffer.allocUnsafe(20 * KiB).fill(1) },
    { name: "after other bytes in its buffer", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(KiB) },
    { name: "before other bytes in its buffer", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(0, 30 * KiB) },
    { name: "that threads share", chunk: () => new Uint8Array(new SharedArrayBuffer(16 * KiB)).fill(1) },
  ])("$name is not freed", ({ chunk }) => {
    const bytes = chunk();
    const before = Uint8Array.from(bytes);
    freeChunk(bytes);
    expect(Buffer.compare(bytes, before)).toBe(0);
  });
});

test.each([
  { name: "that were marked", bytes: () => markSingleUse(Buffer.alloc(64 * KiB)), want: true },
  {
    name: "at the end of marked bytes",
    bytes: () => markSingleUse(Buffer.alloc(64 * KiB)).subarray(60 * KiB),
    want: true,
  },
  { name: "that were not marked", bytes: () => Buffer.alloc(64 * KiB), want: false },
  {
    name: "that share their buffer with others",
    bytes: () => markSingleUse(Buffer.alloc(64 * KiB).subarray(1)),
    want: false,
  },
])("bytes $name are for single use: $want", ({ bytes, want }) => {
  expect(isSingleUse(bytes())).toBe(want);
});

test("nudgeScavenge() allocates at most 2 MiB for a buffer of any length", () => {
  const before = process.memoryUsage().heapUsed;
  nudgeScavenge(256 * KiB * KiB);
  // Everything else allocated in the meantime is a few kilobytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3 * KiB * KiB);
});
