import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BodyPieces } from "../../../../src/gateway/carriers/sockets/body-pieces.ts";

/** A piece as it lies in a chunk. */
function inChunk(text: string, chunkBytes: number): Uint8Array {
  const chunk = new Uint8Array(Math.max(chunkBytes, text.length));
  return chunk.subarray(0, Buffer.from(text, "latin1").copy(chunk));
}

describe("pieces of a body", () => {
  test("come out in the order they went in, one by one and all at once", () => {
    const piece = fc.tuple(
      fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 40 }),
      fc.constantFrom(0, 100, 10_000),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.nat({ max: 10 }), (given, taken) => {
        const pieces = new BodyPieces();
        for (const [text, chunkBytes] of given) pieces.add(inChunk(text, chunkBytes));
        const want = given.map(([text]) => text).join("");
        expect(pieces.bytes).toBe(want.length);
        const out: (Uint8Array | undefined)[] = Array.from({ length: taken }, () => pieces.shift());
        out.push(pieces.takeAll());
        expect(Buffer.concat(out.filter((one) => one !== undefined)).toString("latin1")).toBe(want);
        expect(pieces.bytes).toBe(0);
        expect(pieces.shift()).toBeUndefined();
      }),
    );
  });

  test.each([
    { name: "beside their chunks", chunkBytes: 4096 },
    { name: "and in chunks of their own", chunkBytes: 1 },
  ])("that are small $name are kept in few buffers of their size", ({ chunkBytes }) => {
    const pieces = new BodyPieces();
    for (let i = 0; i < 25_000; i++) pieces.add(inChunk("x", chunkBytes));
    let kept = 0;
    const buffers = new Set<ArrayBufferLike>();
    for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) buffers.add(piece.buffer);
    for (const { byteLength } of buffers) kept += byteLength;
    expect(kept).toBeLessThan(70_000);
    expect(buffers.size).toBeLessThan(20);
  });

  test("that fill their chunk are not copied", () => {
    const pieces = new BodyPieces();
    for (const bytes of [20, 6000]) {
      const given = inChunk("x".repeat(bytes), bytes + 9);
      pieces.add(given);
      expect(pieces.shift()).toBe(given);
    }
  });
});
