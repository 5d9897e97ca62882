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
