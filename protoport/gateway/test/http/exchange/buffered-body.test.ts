import { GCProfiler } from "node:v8";
import { isMarkedAsUntransferable } from "node:worker_threads";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BufferedBody, maxBlockBytes, detachFromChunk } from "../../../src/http/exchange/buffered-body.ts";
import { freeBuffer, planBody, RequestBody } from "../../../src/http/exchange/index.ts";

const chunk = new Uint8Array(65_536);

/** Takes all blocks. */
function drain(held: BufferedBody): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  for (let block = held.shift(); block !== undefined; block = held.shift()) blocks.push(block);
  return blocks;
}

test.each([
  { outcome: "returns a body at the limit", bytes: 10, read: 10 },
  { outcome: "returns no body above the limit", bytes: 11, read: undefined },
])("RequestBody.read() $outcome", ({ bytes, read }) => {
  const body = new RequestBody({ startBody: () => {}, consumed: () => {} }, 0);
  body.onData(new Uint8Array(bytes), true);
  const received: (number | undefined)[] = [];
  body.read(planBody(10), { received: (whole) => received.push(whole?.byteLength) });
  expect(received).toEqual([read]);
});

test.each([1, 2, 40])("a %d-piece body is read into a transferable buffer", (pieces) => {
  const held = new BufferedBody();
  for (let added = 0; added < pieces; added++) held.add(chunk.subarray(0, 600));
  const whole = held.takeAll();
  expect([whole.byteLength, held.byteLength, isMarkedAsUntransferable(whole.buffer)]).toEqual([600 * pieces, 0, false]);
});

describe("detachFromChunk()", () => {
  test.each([
    { bytes: 1025, chunkBytes: 16_384 },
    { bytes: 16_384, chunkBytes: 65_536 },
    { bytes: 16_384, chunkBytes: 18_433 },
  ])("copies a $bytes-byte piece of a $chunkBytes-byte chunk", ({ bytes, chunkBytes }) => {
    const piece = new Uint8Array(chunkBytes).subarray(9, 9 + bytes).fill(7);
    const own = detachFromChunk(piece);
    expect(own.buffer.byteLength).toBe(bytes);
    expect(Buffer.compare(own, piece)).toBe(0);
  });

  test.each([
    { bytes: 1, chunkBytes: 16_383 },
    { bytes: 16_384, chunkBytes: 18_432 },
    { bytes: 65_536, chunkBytes: 65_536 },
  ])("does not copy a $bytes-byte piece of a $chunkBytes-byte chunk", ({ bytes, chunkBytes }) => {
    const piece = new Uint8Array(chunkBytes).subarray(chunkBytes - bytes);
    expect(detachFromChunk(piece)).toBe(piece);
  });

  test.each([
    { bytes: 19, chunkBytes: 20 },
    { bytes: 16_384, chunkBytes: 16_393 },
  ])("returns $bytes bytes that can be transferred without detaching the chunk", (row) => {
    const part = new Uint8Array(row.chunkBytes);
    freeBuffer(detachFromChunk(part.subarray(0, row.bytes)).buffer);
    expect(part.byteLength).toBe(row.chunkBytes);
  });

  test.each([1, 1000, 1025])("returns %d-byte pieces that share no buffer", (bytes) => {
    const [first, second] = [0, bytes].map((at) => detachFromChunk(chunk.subarray(at, at + bytes)));
    expect([first?.buffer.byteLength, second?.buffer.byteLength]).toEqual([bytes, bytes]);
    expect(first?.buffer).not.toBe(second?.buffer);
  });

  test("copies small pieces for shared memory into blocks of 8 KiB", () => {
    const pieces = Array.from({ length: 10 }, (_, at) => chunk.slice(0, 16_384).fill(at).subarray(0, 1024));
    const copies = pieces.map((piece) => detachFromChunk(piece, "shared"));
    expect(copies.map((copy) => [...copy])).toEqual(pieces.map((piece) => [...piece]));
    expect([...new Set(copies.map(({ buffer }) => buffer.byteLength))]).toEqual([8192]);
    expect(new Set(copies.map(({ buffer }) => buffer)).size).toBeLessThanOrEqual(3);
    expect(detachFromChunk(chunk.subarray(0, 1025), "shared").buffer.byteLength).toBe(1025);
  });

  test("triggers garbage collection of detached buffers", () => {
    const profiler = new GCProfiler();
    profiler.start();
    for (let piece = 0; piece < 4096; piece++) detachFromChunk(chunk);
    // Under load V8 may mark the entire heap instead.
    const collections = profiler.stop().statistics;
    // Half of 256 MiB was allocated among young objects, whose space has at most 32 MiB, some of it still free.
    expect(collections.length).toBeGreaterThanOrEqual(2);
  });
});

describe("BufferedBody", () => {
  test("returns its bytes unchanged, in blocks or in one piece", () => {
    const piece = fc.tuple(fc.nat({ max: 255 }), fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 3 * maxBlockBytes })));
    const steps = fc.array(fc.oneof(piece, fc.constant("shift"), fc.constant("take all")), { maxLength: 20 });
    fc.assert(
      fc.property(steps, (chosen) => {
        const held = new BufferedBody();
        const expected: Uint8Array[] = [];
        const blocks: Uint8Array[] = [];
        for (const step of chosen) {
          if (step === "shift") blocks.push(held.shift() ?? new Uint8Array(0));
          else if (step === "take all") blocks.push(held.takeAll());
          else {
            const bytes = new Uint8Array(step[1]).fill(step[0]);
            expected.push(bytes);
            held.add(bytes);
          }
        }
        blocks.push(held.takeAll());
        expect([held.byteLength, Buffer.concat(blocks).equals(Buffer.concat(expected))]).toEqual([0, true]);
      }),
      { numRuns: 50 },
    );
  });

  test.each([1, 64, 9_000, 16_384, 65_536])("keeps %d-byte pieces in little more memory than their length", (bytes) => {
    for (const totalBytes of [1_000, 9_000, 200_000]) {
      const held = new BufferedBody();
      while (held.byteLength < totalBytes) held.add(chunk.subarray(0, bytes));
      const { byteLength } = held;
      const blocks = drain(held);
      expect(blocks.length).toBeLessThan(70);
      expect(Math.max(...blocks.map((block) => block.byteLength))).toBeLessThanOrEqual(maxBlockBytes);
      const kept = blocks.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
      expect(kept).toBeLessThanOrEqual((byteLength * 9) / 8 + 512);
    }
  });

  test("uses exactly the length of a single piece", () => {
    const held = new BufferedBody();
    for (const text of ["orders", "seed"]) {
      held.add(Buffer.from(text));
      expect(held.shift()?.buffer.byteLength).toBe(text.length);
    }
  });
});
