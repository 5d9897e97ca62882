import { expect, test } from "vitest";
import { freeChunk, isSingleUse, markSingleUse } from "../../../src/http/exchange/index.ts";
import { triggerEarlyScavenge } from "../../../src/http/exchange/free-memory.ts";

const KiB = 1024;

test("freeChunk frees a chunk of 16 KiB with all its views", () => {
  const chunk = Buffer.alloc(16 * KiB, 1);
  const view = chunk.subarray(1);
  freeChunk(chunk);
  expect([chunk.byteLength, view.byteLength]).toStrictEqual([0, 0]);
});

test.each([
  { name: "a chunk from Node's buffer pool", chunk: () => Buffer.allocUnsafe(20 * KiB).fill(1) },
  { name: "a chunk at the end of a larger buffer", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(KiB) },
  { name: "a chunk at the start of a larger buffer", chunk: () => Buffer.alloc(40 * KiB, 1).subarray(0, 30 * KiB) },
  { name: "a chunk in shared memory", chunk: () => new Uint8Array(new SharedArrayBuffer(16 * KiB)).fill(1) },
])("freeChunk leaves $name unchanged", ({ chunk }) => {
  const bytes = chunk();
  const before = Uint8Array.from(bytes);
  freeChunk(bytes);
  expect(Buffer.compare(bytes, before)).toBe(0);
});

test.each([
  [true, "marked bytes", () => markSingleUse(Buffer.alloc(64 * KiB))],
  [true, "the last bytes of a marked buffer", () => markSingleUse(Buffer.alloc(64 * KiB)).subarray(60 * KiB)],
  [false, "unmarked bytes", () => Buffer.alloc(64 * KiB)],
  [false, "bytes that share their buffer with other bytes", () => markSingleUse(Buffer.alloc(64 * KiB).subarray(1))],
])("isSingleUse returns %s for %s", (want, _name, bytes) => expect(isSingleUse(bytes())).toBe(want));

test("triggerEarlyScavenge() allocates at most 2 MiB for a buffer of any length", () => {
  const before = process.memoryUsage().heapUsed;
  triggerEarlyScavenge(256 * KiB * KiB);
  // Everything else allocated in the meantime is a few kilobytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3 * KiB * KiB);
});
