import { describe, expect, test } from "vitest";
import { copyIfPooled } from "../../../src/http/exchange/bytes.ts";

describe("copyIfPooled()", () => {
  test.each([1, 1_000, Buffer.poolSize / 2 - 1])("copies a %i-byte slice from the pool", (length) => {
    const bytes = Buffer.allocUnsafe(length).fill("x");
    const own = copyIfPooled(bytes);
    expect(Buffer.from(own)).toEqual(bytes);
    expect([bytes.buffer.byteLength > length, own.buffer.byteLength]).toEqual([true, length]);
  });

  test.each([
    { what: "bytes that fill their buffer", bytes: new Uint8Array(10) },
    { what: "bytes that are half of their buffer", bytes: new Uint8Array(20).subarray(10) },
    {
      what: "bytes longer than any slice of the pool",
      bytes: new Uint8Array(2 * Buffer.poolSize).subarray(Buffer.poolSize * 1.5),
    },
  ])("returns $what without a copy", ({ bytes }) => {
    expect(copyIfPooled(bytes)).toBe(bytes);
  });
});
