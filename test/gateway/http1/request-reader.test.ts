import { expect, test } from "vitest";
import { defaultLimits } from "../../../src/gateway/carriers/index.ts";
import { RequestReader } from "../../../src/gateway/http1/request-reader.ts";

test("a reader that has stopped holds nothing of what had arrived", () => {
  const parts = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("GET / HTTP/1.1\r\n"));
  expect(reader.incoming.left).toBe(16);
  reader.stop();
  expect(reader.incoming.left).toBe(0);
});

test("what is left of a chunk is kept in a copy, though it be a byte", () => {
  const parts = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  const chunk = Buffer.from("G");
  reader.read(chunk);
  chunk.fill(0);
  expect(reader.incoming.bytes.toString()).toBe("G");
});

test("a chunk is kept for as long as its own pieces are, not those of an earlier one", () => {
  let isKept = true;
  const parts = { onHead: () => {}, onPiece: () => isKept, onBodyEnd: () => {}, onBroken: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  const first = reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc"));
  isKept = false;
  expect([first, reader.read(Buffer.from("def"))]).toEqual([true, false]);
});
