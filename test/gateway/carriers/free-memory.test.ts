import { describe, expect, test } from "vitest";
import { freeChunk } from "../../../src/gateway/carriers/index.ts";

const KiB = 1024;

describe("a chunk", () => {
  test("of 16 KiB is freed, and every view of it is empty", () => {
    const chunk = Buffer.alloc(16 * KiB, 1);
    const view = chunk.subarray(1);
    freeChunk(chunk);
    expect([chunk.byteLength, view.byteLength]).toStrictEqual([0, 0]);
  });

  test.each([
    { name: "that is smaller", chunk: () => Buffer.alloc(16 * KiB - 1, 1) },
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
