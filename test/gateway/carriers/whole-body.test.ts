import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { WholeBody } from "../../../src/gateway/carriers/whole-body.ts";

describe("a whole body", () => {
  test("is its pieces, whatever was announced", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.nat({ max: 2000 }), (pieces, announcedBytes) => {
        const body = new WholeBody(announcedBytes);
        for (const piece of pieces) body.add(piece);
        expect(body.byteLength).toBe(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
        expect(Buffer.from(body.bytes)).toEqual(Buffer.concat(pieces));
      }),
    );
  });

  test.each([
    { announced: 0xffff_ffff, times: 8 },
    { announced: 0, times: 2 },
  ])(
    "takes $times times the memory of what has arrived when $announced bytes are announced",
    ({ announced, times }) => {
      const body = new WholeBody(announced);
      for (let i = 0; i < 1000; i++) {
        body.add(new Uint8Array(100));
        expect(body.bytes.buffer.byteLength).toBeLessThanOrEqual(times * body.byteLength);
      }
    },
  );

  test("is one buffer of the announced length once an eighth has arrived", () => {
    const body = new WholeBody(1000);
    body.add(new Uint8Array(125));
    const { buffer } = body.bytes;
    body.add(new Uint8Array(875));
    expect(body.bytes.buffer).toBe(buffer);
    expect(buffer.byteLength).toBe(1000);
  });
});
