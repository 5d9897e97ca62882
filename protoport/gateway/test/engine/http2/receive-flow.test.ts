import { expect, test } from "vitest";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
import { openEngine, pipe, receiving, startEngine } from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { dataFrame, frame, type FrameConnection, frameFlag, frameType, openFrames, pingFrame, resetFrame
} from "@protoport/testing/http";
import { begun } from "../../../../testing/src/http2/http2-requests.ts";

const limits = { connectionWindowBytes: 65_535, streamWindowBytes: 65_535 };
const chunk = Buffer.alloc(10_000);

/** Returns the credit for each stream, and under the key 0 for the connection, until a PING is acknowledged. */
async function givenBack(connection: FrameConnection): Promise<Record<number, number>> {
  const given: Record<number, number> = {};
  connection.send(pingFrame);
  await connection.readUntil(({ type, streamId, payload, flags }) => {
    if (type === frameType.windowUpdate) given[streamId] = (given[streamId] ?? 0) + payload.readUInt32BE(0);
    return type === frameType.ping && flags === frameFlag.ack;
  });
  return given;
}

test("bytes of a closed stream are credited once, even if consumed later", async () => {
  const streams: Http2Stream[] = [];
  await using connection = await openEngine({
    limits,
    serve: (stream) => {
      streams.push(stream);
      stream.receiver = receiving(stream, { onData: () => {} });
    },
  });
  connection.send(begun(1), ...[1, 1, 1, 1].map((id) => dataFrame(id, chunk)), resetFrame(1, 8));
  expect(await givenBack(connection)).toStrictEqual({ 0: 40_000 });
  for (const stream of streams) stream.consumed(40_000);
  expect(await givenBack(connection)).toStrictEqual({});
});

test("bytes that a stream consumed before it closed are not credited again", async () => {
  await using connection = await openEngine({ limits, serve: (stream) => (stream.receiver = receiving(stream)) });
  connection.send(begun(1), ...[1, 1, 1, 1].map((id) => dataFrame(id, chunk)));
  expect(await givenBack(connection)).toStrictEqual({ 0: 40_000, 1: 40_000 });
  connection.send(resetFrame(1, 8));
  expect(await givenBack(connection)).toStrictEqual({});
});

test("only the connection is credited after a complete body", async () => {
  await using engine = await startEngine({ limits, serve: (stream) => (stream.receiver = receiving(stream)) });
  using connection = await openFrames(engine.address);
  connection.send(begun(1), ...[0, 0, 0, frameFlag.endStream].map((flags) => dataFrame(1, chunk, flags)));
  expect(await givenBack(connection)).toStrictEqual({ 0: 40_000 });
});

test("an open stream is credited when half its window is consumed", async () => {
  await using engine = await startEngine({ limits, serve: (stream) => (stream.receiver = receiving(stream)) });
  using connection = await openFrames(engine.address);
  connection.send(begun(1), ...[1, 1, 1].map((id) => dataFrame(id, chunk)));
  expect(await givenBack(connection)).toStrictEqual({});
  connection.send(dataFrame(1, chunk));
  expect(await givenBack(connection)).toStrictEqual({ 0: 40_000, 1: 40_000 });
});

test("padding is credited", async () => {
  await using connection = await openEngine({ limits, serve: pipe });
  const padding = frame(frameType.data, frameFlag.padded, 1, Buffer.concat([Buffer.from([254]), Buffer.alloc(255)]));
  connection.send(begun(1), ...Array.from({ length: 150 }, () => padding));
  const given = await givenBack(connection);
  expect(given[1]).toBeGreaterThanOrEqual(32_768);
  expect(given[0]).toBe(given[1]);
});
