import { GCProfiler } from "node:v8";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CollectedBytes, copyIfPooled } from "../../../src/http/exchange/bytes.ts";
import { freeChunk } from "../../../src/http/exchange/index.ts";

test.each([1, 1_000, Buffer.poolSize / 2 - 1])("copyIfPooled() copies a %i-byte slice from the pool", (length) => {
  const bytes = Buffer.allocUnsafe(length).fill("x");
  const own = copyIfPooled(bytes);
  expect([Buffer.from(own), bytes.buffer.byteLength > length, own.buffer.byteLength]).toEqual([bytes, true, length]);
});

test.each([
  ["bytes that fill their buffer", new Uint8Array(10)],
  ["bytes that are half of their buffer", new Uint8Array(20).subarray(10)],
  ["bytes longer than any slice of the pool", new Uint8Array(2 * Buffer.poolSize).subarray(Buffer.poolSize * 1.5)],
])("copyIfPooled() returns %s without a copy", (_what, bytes) => expect(copyIfPooled(bytes)).toBe(bytes));

describe("CollectedBytes", () => {
  test("joins the pieces for any announced length", () =>
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.nat({ max: 2000 }), (pieces, announcedBytes) => {
        const collected = new CollectedBytes(announcedBytes, 2400);
        for (const piece of pieces) collected.add(piece);
        expect(collected.byteLength).toBe(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
        expect(Buffer.from(collected.bytes)).toEqual(Buffer.concat(pieces));
      }),
    ));

  test.each([
    { announced: 0xffff_ffff, times: 8 },
    { announced: 0, times: 2 },
  ])("uses at most $times times the received bytes if $announced bytes are announced", ({ announced, times }) => {
    const collected = new CollectedBytes(announced, 0xffff_ffff);
    for (let i = 0; i < 1000; i++) {
      collected.add(new Uint8Array(100));
      expect(collected.bytes.buffer.byteLength).toBeLessThanOrEqual(times * collected.byteLength);
    }
  });

  test.each([[0], [700], [5000]])("uses no more memory than the limit if %s bytes are announced", (announced) => {
    const collected = new CollectedBytes(announced, 1000);
    for (let i = 0; i < 10; i++) {
      collected.add(new Uint8Array(99));
      expect(collected.bytes.buffer.byteLength).toBeLessThanOrEqual(1000);
    }
  });

  test("allocates an eighth of the announced length until more bytes arrive", () => {
    const collected = new CollectedBytes(8000, 10_000);
    const sizes = [500, 500, 1, 6999].map((length) => {
      collected.add(new Uint8Array(length));
      return collected.bytes.buffer.byteLength;
    });
    expect(sizes).toEqual([1000, 1000, 8000, 8000]);
  });

  test("triggers garbage collection of its buffers", () => {
    const piece = new Uint8Array(64 * 1024);
    const countCollections = (): number => {
      const profiler = new GCProfiler();
      profiler.start();
      for (let body = 0; body < 512; body++) {
        const collected = new CollectedBytes(8 * piece.byteLength, 8 * piece.byteLength);
        for (let i = 0; i < 8; i++) collected.add(piece);
        // Otherwise the buffers alone trigger a collection.
        freeChunk(collected.bytes);
      }
      return profiler.stop().statistics.length;
    };
    // Half of 256 MiB is allocated among young objects, whose space has at most 32 MiB. On a busy machine, a collection
    // of the entire heap may replace several collections of young objects, so there are up to four attempts.
    expect(Array.from({ length: 4 }).some(() => countCollections() >= 2)).toBe(true);
  });

  test("allocates the announced length once an eighth has arrived", () => {
    const collected = new CollectedBytes(1000, 2000);
    collected.add(new Uint8Array(125));
    const { buffer } = collected.bytes;
    collected.add(new Uint8Array(875));
    expect(collected.bytes.buffer).toBe(buffer);
    expect(buffer.byteLength).toBe(1000);
  });
});
