import { createServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { defaultLimits, ErrorCode } from "../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../src/engine/backlog.ts";
import type { Admit } from "../../src/index.ts";
import { createHttp2Server } from "../../src/engine/http2-server.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, encodeEnvelope, type Field, type Frame, frame, frameBytes, frameFlag, frameType,
  grpcHeader, headerBlock, headersFrame, leastOf, openFrames, openGreenhouse, openHttp2, retainedBytes, startGreenhouse,
  startOnLoopback, waterBedProcedure } from "@protoport/testing";
import { answered } from "../../../testing/src/http2/http2-requests.ts";

const header = grpcHeader(waterBedProcedure);
const message = encodeEnvelope(0, Buffer.of(8, 7));

test("a draining server serves streams that clients open before GOAWAY arrives", async () => {
  const requested = Promise.withResolvers<void>();
  const response = Promise.withResolvers<object>();
  await using greenhouse = await startGreenhouse({
    waterBed: async () => (requested.resolve(), await response.promise),
  });
  using silent = await openFrames(greenhouse.address, { settled: false });
  using busy = await openFrames(greenhouse.address);
  busy.send(headersFrame(1, header), dataFrame(1, message, frameFlag.endStream));
  await requested.promise;
  const drained = greenhouse.gateway.drain(10_000);
  const call = [headersFrame(1, header), dataFrame(1, message, frameFlag.endStream)];
  const opening = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0), ...call];
  silent.socket.write(Buffer.concat([clientPreface, ...opening.map(frameBytes)]));
  const goAway = await silent.readUntil(({ type }) => type === frameType.goAway);
  expect(goAway?.payload.readUInt32BE(0)).toBe(2 ** 31 - 1);
  const ping = await silent.readUntil(({ type }) => type === frameType.ping);
  silent.send(frame(frameType.ping, frameFlag.ack, 0, ping?.payload));
  expect((await silent.readUntil(({ type }) => type === frameType.goAway))?.payload.readUInt32BE(0)).toBe(1);
  response.resolve({});
  expect(await Promise.all([silent.readEnd(1), busy.readEnd(1)])).toStrictEqual([answered, answered]);
  busy[Symbol.dispose]();
  silent[Symbol.dispose]();
  await drained;
});

test("the window of a connection has the size limits.connectionWindowBytes", async () => {
  await using greenhouse = await startGreenhouse({}, { limits: { connectionWindowBytes: 300_000 } });
  using connection = await openHttp2(greenhouse.address);
  await new Promise((resolve) => connection.session.ping(resolve));
  expect(connection.session.state.remoteWindowSize).toBe(300_000);
});

test("a body that fills its flow-control window before admission is read completely", async () => {
  const gate = Promise.withResolvers<void>();
  await using connection = await openGreenhouse(openFrames, { waterBed: () => ({}) }, { admit: () => gate.promise });
  const windowBytes = 256 * 1024;
  // A body that begins with white space, which JSON allows.
  const body = Buffer.from(`{"bed":"7"}`.padStart(windowBytes + 10));
  const json = header.map(([name, value]): Field => [name, name === "content-type" ? "application/json" : value]);
  const part = (at: number): Frame => dataFrame(1, body.subarray(at, at + 16_384));
  await connection.settle(headersFrame(1, json), ...Array.from({ length: 16 }, (_, i) => part(i * 16_384)));
  gate.resolve();
  const update = await connection.readUntil(({ type, streamId }) => type === frameType.windowUpdate && streamId === 1);
  expect(update?.payload.readUInt32BE(0)).toBe(windowBytes);
  connection.send(dataFrame(1, body.subarray(windowBytes), frameFlag.endStream));
  expect(await connection.readEnd(1)).toStrictEqual({ kind: "responded", httpStatus: 200 });
});

test("a long call does not keep its message's chunk in memory", async () => {
  const response = Promise.withResolvers<object>();
  await using connection = await openGreenhouse(openFrames, { waterBed: () => response.promise });
  // Bytes in an unknown field, of which protobuf-es keeps a view.
  const withBytes = encodeEnvelope(0, Buffer.of(8, 7, 122, 1, 65));
  const nobodyKnows = frame(0x16, 0, 0, Buffer.alloc(16_384));
  const calls = 40;
  let streamId = -1;
  const callAll = async (): Promise<number> => {
    const before = await retainedBytes();
    for (let call = 0; call < calls; call++) {
      streamId += 2;
      const body = dataFrame(streamId, withBytes, frameFlag.endStream);
      await connection.settle(headersFrame(streamId, header), body, nobodyKnows, nobodyKnows, nobodyKnows);
    }
    return (await retainedBytes()) - before;
  };
  const limitBytes = (calls * 3 * 16_384) / 2;
  expect(await leastOf(callAll, limitBytes)).toBeLessThan(limitBytes);
  response.resolve({});
  expect(await connection.readEnd(1)).toStrictEqual({ kind: "responded", httpStatus: 200 });
});

test("a client gets no 100 Continue once its response has started", async () => {
  const http2 = createHttp2Server({
    limits: defaultLimits,
    budget: new BacklogBudget(2 ** 30),
    serve: (exchange) => {
      exchange.begin(200, []);
      exchange.body?.pieces();
      exchange.end();
    },
    refuse: () => {},
    stopProblem: () => undefined,
    countError: () => {},
    report: () => {},
  });
  await using server = await startOnLoopback(createServer((socket) => void http2.take(socket)));
  using connection = await openFrames(server.address);
  connection.send(headersFrame(1, [...header, ["expect", "100-continue"]]));
  let sections = 0;
  await connection.readUntil(({ type, flags }) => {
    if (type === frameType.headers) sections += 1;
    return type === frameType.data && (flags & frameFlag.endStream) !== 0;
  });
  expect(sections).toBe(1);
});

test("a stream is reset when its body takes longer than requestTimeoutMs", async () => {
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { limits: { requestTimeoutMs: 60 } });
  using connection = await openFrames(greenhouse.address);
  connection.send(headersFrame(1, header), dataFrame(1, message.subarray(0, 1)));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "reset", errorCode: ErrorCode.cancel });
});

test("a client that acknowledges no PING is disconnected after another idleTimeoutMs", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const requested = Promise.withResolvers<void>();
  const waterBed = async (): Promise<object> => (requested.resolve(), await new Promise(() => {}));
  await using connection = await openGreenhouse(openFrames, { waterBed }, { limits: { idleTimeoutMs: 1000 } });
  connection.send(headersFrame(1, header), dataFrame(1, message, frameFlag.endStream));
  await requested.promise;
  for (let passedMs = 0; passedMs < 2500; passedMs += 250) {
    vi.advanceTimersByTime(250);
    await nextTurn();
  }
  expect(await connection.readEnd(1)).toMatchObject({ kind: "closed" });
});

test.each([
  { bytes: 6000, want: "a response" },
  { bytes: 9000, want: "no response" },
])("a $bytes-byte field block gets $want if headerBytes is 2000", async (row) => {
  await using connection = await openGreenhouse(openFrames, {}, { limits: { headerBytes: 2000 } });
  const block = headerBlock([...header, ["x", "x".repeat(row.bytes - 300)]]);
  const flags = frameFlag.endStream;
  const rest = frame(frameType.continuation, frameFlag.endHeaders, 1, block.subarray(1000));
  connection.send(frame(frameType.headers, flags, 1, block.subarray(0, 1000)), rest);
  const end = await connection.readUntil(({ type }) => type === frameType.headers || type === frameType.goAway);
  expect(end?.type === frameType.headers ? "a response" : "no response").toBe(row.want);
});

test("admit receives a 70,000-byte header field if headerBytes is 80,000", async () => {
  let receivedBytes: number | undefined;
  const admit: Admit = ({ header: fields }) => void (receivedBytes = fields.get("x")?.length);
  await using connection = await openGreenhouse(openFrames, {}, { admit, limits: { headerBytes: 80_000 } });
  const block = headerBlock([...header, ["x", "x".repeat(70_000)]]);
  // Each frame holds at most 16 KiB.
  const pieces = [0, 1, 2, 3, 4].map((at) => block.subarray(at * 16_384, (at + 1) * 16_384));
  const [first, ...rest] = pieces;
  connection.send(
    frame(frameType.headers, frameFlag.endStream, 1, first),
    ...rest.map((piece) => frame(frameType.continuation, piece === rest.at(-1) ? frameFlag.endHeaders : 0, 1, piece)),
  );
  expect([await connection.readEnd(1), receivedBytes]).toMatchObject([{ kind: "responded" }, 70_000]);
});
