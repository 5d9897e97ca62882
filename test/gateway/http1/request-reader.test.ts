import { expect, test, vi } from "vitest";
import { defaultLimits, freeBuffer, ownPiece } from "../../../src/gateway/carriers/index.ts";
import { RequestReader } from "../../../src/gateway/http1/request-reader.ts";

test("a reader that has stopped holds nothing of what had arrived", () => {
  const parts = { onHead: () => {}, onPiece: () => {}, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("GET / HTTP/1.1\r\n"));
  expect(reader.incoming.left).toBe(16);
  reader.stop();
  expect(reader.incoming.left).toBe(0);
});

test("what is left of a chunk is kept in a copy, though it be a byte", () => {
  const parts = { onHead: () => {}, onPiece: () => {}, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  const chunk = Buffer.from("G");
  reader.read(chunk);
  chunk.fill(0);
  expect(reader.incoming.bytes.toString()).toBe("G");
});

test("a body whose memory is transferred as it comes takes nothing of the next request along", () => {
  const parts = { onHead: () => {}, onPiece: transfer, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\n"));
  reader.read(Buffer.from("content-length: 3\r\n\r\nabcGET / HT"));
  expect(reader.incoming.bytes.toString()).toBe("GET / HT");
});

test("heads of 4 KiB are kept for the next, all in the same memory, and longer ones are not", () => {
  const parts = { onHead: () => {}, onPiece: () => {}, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  using made = vi.spyOn(Buffer, "allocUnsafeSlow");
  for (const [nth, bytes] of [4096, 4097, 100, 4096].entries()) {
    const lines = `host: x\r\na: ${String(nth).repeat(bytes - 14)}\r\n`;
    reader.read(Buffer.from(`GET / HTTP/1.1\r\n${lines}\r\n`));
    reader.stage = "head";
  }
  // With the empty line.
  expect(made.mock.calls).toEqual([[4098]]);
});

function transfer(piece: Uint8Array): void {
  freeBuffer(ownPiece(piece).buffer);
}
