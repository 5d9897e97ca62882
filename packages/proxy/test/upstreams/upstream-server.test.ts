import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  clientPreface,
  frame,
  frameBytes,
  frameFlag,
  frameType,
  readFrames,
} from "../../../testing/src/http/http2-frames.ts";
import { startOnLoopback } from "../../../testing/src/http/listen-on-loopback.ts";
import { openGreenhouse, watered, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
import { grpcResponse } from "../../../testing/src/gateway/scripted-http2-server.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Starts a server that closes the first connection, and sends SETTINGS on the third only after its first request. */
async function startLateServer() {
  const settings = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0)];
  let connections = 0;
  const server = createServer((socket) => {
    const index = connections++;
    if (index === 0) return void socket.destroy();
    const read = async (): Promise<void> => {
      while (socket.read(clientPreface.byteLength) === null) await once(socket, "readable");
      const frames = readFrames(socket);
      for (let next = await frames.readFrame(); next !== undefined; next = await frames.readFrame()) {
        const isFirst = next.type === frameType.settings && (next.flags & frameFlag.ack) === 0;
        if (isFirst && index === 1) socket.write(Buffer.concat(settings.map(frameBytes)));
        const isData = next.type === frameType.data || next.type === frameType.headers;
        if (!isData || (next.flags & frameFlag.endStream) === 0) continue;
        const sent = [...(index === 1 ? [] : settings), ...grpcResponse(next.streamId, watered)];
        socket.write(Buffer.concat(sent.map(frameBytes)));
        if (index === 1) socket.end();
      }
    };
    read().catch(() => undefined);
  });
  return await startOnLoopback(server);
}

test("a server that recovers gets calls before its next SETTINGS again", async () => {
  await using server = await startLateServer();
  await using client = openGreenhouse({ addresses: server.baseUrl });
  expect(await wateringOf(client)).toContain("the server did not respond with HTTP/2");
  vi.advanceTimersByTime(2_000);
  expect(await wateringOf(client)).toBe("ok");
  await expect.poll(() => client.upstream.load.connections).toBe(0);
  vi.advanceTimersByTime(2_000);
  expect(await wateringOf(client)).toBe("ok");
});
