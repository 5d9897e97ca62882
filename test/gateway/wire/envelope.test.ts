import { Code } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readSingleEnvelope, writeEnvelope } from "../../../src/gateway/wire/envelope.ts";

const limitBytes = 10;

function bytes(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values);
}

describe("readSingleEnvelope", () => {
  test.each([
    { name: "an empty message", given: bytes(0, 0, 0, 0, 0), compressed: false, message: [] },
    { name: "a message", given: bytes(0, 0, 0, 0, 2, 7, 8), compressed: false, message: [7, 8] },
    { name: "a compressed message", given: bytes(1, 0, 0, 0, 1, 9), compressed: true, message: [9] },
    {
      name: "a message of just the limit",
      given: bytes(0, 0, 0, 0, 10, ...Buffer.alloc(10)),
      compressed: false,
      message: [...Buffer.alloc(10)],
    },
  ])("takes $name", ({ given, compressed, message }) => {
    const envelope = readSingleEnvelope(given, limitBytes);
    expect(envelope.compressed).toBe(compressed);
    expect([...envelope.bytes]).toEqual(message);
  });

  test.each([
    { name: "no byte at all", given: bytes(), code: Code.Unimplemented },
    { name: "a prefix that is cut short", given: bytes(0, 0, 0, 0), code: Code.InvalidArgument },
    { name: "a message that is cut short", given: bytes(0, 0, 0, 0, 2, 7), code: Code.InvalidArgument },
    { name: "two messages", given: bytes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), code: Code.Unimplemented },
    { name: "a byte behind the message", given: bytes(0, 0, 0, 0, 1, 7, 8), code: Code.Unimplemented },
    { name: "reserved flags", given: bytes(0b10, 0, 0, 0, 0), code: Code.InvalidArgument },
    { name: "the flag of Connect's end of stream", given: bytes(0b11, 0, 0, 0, 0), code: Code.InvalidArgument },
    { name: "the flag of gRPC-Web's trailer", given: bytes(0x80, 0, 0, 0, 0), code: Code.InvalidArgument },
    { name: "a length over the limit", given: bytes(0, 0, 0, 0, 11), code: Code.ResourceExhausted },
    { name: "a length of 2^31", given: bytes(0, 0x80, 0, 0, 0), code: Code.ResourceExhausted },
    { name: "the greatest length there is", given: bytes(0, 255, 255, 255, 255), code: Code.ResourceExhausted },
  ])("refuses $name", ({ given, code }) => {
    expect(() => readSingleEnvelope(given, limitBytes)).toThrow(expect.objectContaining({ code }));
  });

  test("reads what writeEnvelope wrote, with room behind it", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.boolean(), fc.nat(8), (message, compressed, spareBytes) => {
        const written = writeEnvelope(compressed ? 1 : 0, message, spareBytes);
        expect(written.byteLength).toBe(5 + message.byteLength + spareBytes);
        const read = readSingleEnvelope(written.subarray(0, written.byteLength - spareBytes), message.byteLength);
        expect(read.compressed).toBe(compressed);
        expect(Buffer.from(read.bytes).equals(message)).toBe(true);
      }),
    );
  });
});
