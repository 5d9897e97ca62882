import { describe, expect, test } from "vitest";
import { unpooled } from "../../src/exchange/bytes.ts";

describe("bytes that wait", () => {
  test.each([1, 1_000, Buffer.poolSize / 2 - 1])("are copied if they are a slice of the pool of %i bytes", (length) => {
    const bytes = Buffer.allocUnsafe(length).fill("x");
    const own = unpooled(bytes);
    expect(Buffer.from(own)).toEqual(bytes);
    expect([bytes.buffer.byteLength > length, own.buffer.byteLength]).toEqual([true, length]);
  });

  test.each([
    { what: "fill their buffer", bytes: new Uint8Array(10) },
    { what: "are half of it", bytes: new Uint8Array(20).subarray(10) },
    {
      what: "are as long as no slice of the pool",
      bytes: new Uint8Array(2 * Buffer.poolSize).subarray(Buffer.poolSize * 1.5),
    },
  ])("are not copied if they $what", ({ bytes }) => {
    expect(unpooled(bytes)).toBe(bytes);
  });
});
