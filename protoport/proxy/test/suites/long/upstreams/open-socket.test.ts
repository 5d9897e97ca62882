import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { minFreedBytes } from "../../../../../gateway/src/http/exchange/index.ts";
import { openSocket } from "../../../../src/upstreams/open-socket.ts";
import { readUpstreamAddress } from "../../../../src/upstreams/upstream-address.ts";
import { listenOnLoopback } from "../../../../../testing/src/http/listen-on-loopback.ts";

test("a small chunk from the socket has a separate ArrayBuffer", async () => {
  const server = createServer((socket) => void socket.end(Buffer.alloc(100, "a")));
  const address = readUpstreamAddress(await listenOnLoopback(server));
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  openSocket(address, undefined, 60_000, (opened) => {
    if (opened instanceof Error) reject(opened);
    else opened.once("data", resolve);
  });
  const chunk = await promise;
  expect(chunk.byteLength).toBeLessThan(minFreedBytes);
  expect(chunk.buffer.byteLength).toBe(chunk.byteLength);
  await once(server.close(), "close");
});
