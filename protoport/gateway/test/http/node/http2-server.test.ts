import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { nodeEngine } from "../../../src/http/node/index.ts";
import type { Field } from "../../../../testing/src/http/exchange.ts";
import { grpcHeader, sendUnaryCall } from "../../../../testing/src/http/grpc-frames.ts";
import { openHttp2 } from "../../../../testing/src/http/http2-connection.ts";
import {
  dataFrame,
  type FrameConnection,
  frame,
  frameFlag,
  frameType,
  headerBlock,
  headersFrame,
  openFrames,
  resetFrame,
} from "../../../../testing/src/http/http2-frames.ts";
import { startOnLoopback } from "../../../../testing/src/http/listen-on-loopback.ts";
import { useFakeClock } from "../../../../testing/src/fake-clock.ts";
import { within } from "../../../../testing/src/deadline.ts";
import { waterBedProcedure } from "../../../../testing/src/gateway/greenhouse.ts";
import { postHeader } from "../../../../testing/src/http2/http2-requests.ts";
import { failingHooks, startOnNode } from "../../../../testing/src/gateway/on-node.ts";

// Tests what a node:http2 session does not do by itself, or does differently by default.

const json: Field = ["content-type", "application/json"];
const never = 60_000;
const settingsInitialWindow = 4;
const settingsConcurrentStreams = 3;

function smallFields(count: number): Field[] {
  return Array.from({ length: count }, (_, at): Field => [`x${String(at)}`, "y"]);
}

describe("a header on node:http2", () => {
  test.each([
    { name: "of 300 small fields", header: smallFields(300), httpStatus: 200 },
    { name: "above the limit", header: [["x", "y".repeat(17_000)] as const], httpStatus: 431 },
    { name: "of many small fields above the limit", header: smallFields(1700), httpStatus: 431 },
  ])("$name gets a $httpStatus response", async ({ header, httpStatus }) => {
    await using greenhouse = await startOnNode({ waterBed: () => ({}) });
    using connection = await openHttp2(greenhouse.address);
    const body = Buffer.from("{}");
    const response = await connection.exchange({
      httpMethod: "POST",
      path: "/beds/7:water",
      header: [json, ...header],
      body,
    });
    expect(response.httpStatus).toBe(httpStatus);
  });

  test.each<{ name: string; header: readonly Field[]; httpStatus: number }>([
    { name: "with a URL over the limit", header: postHeader([":path", `/${"x".repeat(9000)}`]), httpStatus: 414 },
    { name: "with an invalid authority", header: postHeader([":authority", "[::1"]), httpStatus: 400 },
    {
      name: "with the method CONNECT",
      header: [
        [":method", "CONNECT"],
        [":authority", "x:80"],
      ],
      httpStatus: 400,
    },
  ])("$name gets $httpStatus, and is counted as a bad request", async ({ header, httpStatus }) => {
    await using greenhouse = await startOnNode({});
    using connection = await openFrames(greenhouse.address);
    // If two fields have the same name, the last one counts.
    const fields = [...new Map(header)];
    connection.send(headersFrame(1, fields, frameFlag.endStream));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
    expect([...greenhouse.gateway.load.badRequests]).toEqual([[httpStatus, 1]]);
  });
});

test.each([
  { bytes: 6000, want: "a response", kind: "responded" },
  { bytes: 9000, want: "a reset", kind: "reset" },
])("on node:http2, a $bytes-byte header gets $want if headerBytes is 2000", async ({ bytes, kind }) => {
  await using greenhouse = await startOnNode({}, { limits: { headerBytes: 2000 } });
  using connection = await openFrames(greenhouse.address);
  const long: Field = ["x", "x".repeat(bytes - 300)];
  connection.send(headersFrame(1, [...grpcHeader(waterBedProcedure), long], frameFlag.endStream));
  expect(await connection.readEnd(1)).toMatchObject({ kind });
});

test.each([
  { host: "x", httpStatus: 200 },
  { host: "[::1", httpStatus: 400 },
])("on node:http2, $httpStatus is the response to Host $host without :authority", async ({ host, httpStatus }) => {
  let called: string | undefined;
  const waterBed = (_: object, { url }: { readonly url: string }): object => ({ note: (called = url) });
  await using greenhouse = await startOnNode({ waterBed });
  using connection = await openFrames(greenhouse.address);
  const header = postHeader([":path", "/beds/7:water"], ["host", host], json);
  const fields = [...new Map(header)].filter(([name]) => name !== ":authority");
  connection.send(headersFrame(1, fields), dataFrame(1, Buffer.from("{}"), frameFlag.endStream));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded", httpStatus });
  expect(called).toBe(httpStatus === 200 ? "http://x/beds/7:water" : undefined);
});

test("on node:http2, a header may take more memory than backlogBytes", async () => {
  await using greenhouse = await startOnNode(
    { waterBed: () => ({}) },
    { limits: { backlogBytes: 1000, headerBytes: 2_000_000 } },
  );
  using connection = await openFrames(greenhouse.address);
  // A literal that the server adds to its dynamic table as entry 62, and 300 references to that entry (RFC 7541 §6).
  const entry = Buffer.concat([Buffer.of(0x40, 1, 0x78, 0x7f, 0xa1, 0x1e), Buffer.alloc(4000, "y")]);
  const header = Buffer.concat([headerBlock(grpcHeader(waterBedProcedure)), entry, Buffer.alloc(300, 0xbe)]);
  const flags = frameFlag.endHeaders | frameFlag.endStream;
  connection.send(frame(frameType.headers, flags, 1, header));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded", httpStatus: 200 });
});

describe("a drain on node:http2", () => {
  test("finishes open calls, and ignores streams above the id in GOAWAY", async () => {
    const slow = Promise.withResolvers<{ note: string }>();
    let calls = 0;
    const waterBed = (): Promise<{ note: string }> => {
      calls += 1;
      return slow.promise;
    };
    await using greenhouse = await startOnNode({ waterBed });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    await expect.poll(() => greenhouse.gateway.load.requests.http2).toBe(1);
    expect(greenhouse.gateway.load.connections).toEqual({ http1: 0, http2: 1 });
    const drained = greenhouse.gateway.drain(never);
    const goAway = await connection.readUntil(({ type }) => type === frameType.goAway);
    expect(goAway?.payload.readUInt32BE(0)).toBe(1);
    sendUnaryCall(connection, 3, waterBedProcedure);
    slow.resolve({ note: "done" });
    expect(await readToEnd(connection)).toEqual(new Set([1]));
    expect(calls).toBe(1);
    connection[Symbol.dispose]();
    await within(drained, "the end of the drain");
  });

  test("closes an idle connection even if the client does not close it", async () => {
    await using greenhouse = await startOnNode({ waterBed: () => ({}) });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
    const drained = greenhouse.gateway.drain(never);
    const goAway = await connection.readUntil(({ type }) => type === frameType.goAway);
    expect(goAway?.payload.readUInt32BE(0)).toBe(1);
    await within(drained, "the end of the drain");
  });
});

/** Reads until the server closes the connection, and returns the streams that had a response. */
async function readToEnd(connection: FrameConnection): Promise<ReadonlySet<number>> {
  const answered = new Set<number>();
  await connection.readUntil(({ flags, streamId }) => {
    if (streamId > 0 && (flags & frameFlag.endStream) !== 0) answered.add(streamId);
    return false;
  });
  return answered;
}

test("on node:http2, slow readers are disconnected above the buffer limit", async () => {
  const clock = useFakeClock();
  const note = "orders".repeat(100_000);
  await using greenhouse = await startOnNode(
    { waterBed: () => ({ note }) },
    { limits: { backlogBytes: 2_000_000, idleTimeoutMs: never } },
  );
  const connections = await Promise.all(Array.from({ length: 6 }, () => openFrames(greenhouse.address)));
  for (const connection of connections) sendUnaryCall(connection, 1, waterBedProcedure);
  await clock.waitFor(() => greenhouse.gateway.load.connections.http2 <= 3, "the server to disconnect three clients");
  expect(greenhouse.gateway.load.backlogBytes).toBeLessThanOrEqual(2_000_000);
  for (const connection of connections) connection[Symbol.dispose]();
});

test("on node:http2, a connection with 10 MB of unread responses serves calls", async () => {
  const note = "orders".repeat(100_000);
  let calls = 0;
  const waterBed = (): { note: string } => {
    calls += 1;
    return { note };
  };
  await using greenhouse = await startOnNode({ waterBed });
  using connection = await openFrames(greenhouse.address);
  for (let at = 0; at < 20; at += 1) sendUnaryCall(connection, 2 * at + 1, waterBedProcedure);
  await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBeGreaterThan(11_000_000);
  sendUnaryCall(connection, 41, waterBedProcedure);
  await expect.poll(() => calls).toBe(21);
});

test("on node:http2, idleTimeoutMs starts at the end of a long call", async () => {
  const clock = useFakeClock();
  const slow = Promise.withResolvers<object>();
  await using greenhouse = await startOnNode({ waterBed: () => slow.promise }, { limits: { idleTimeoutMs: 1000 } });
  using connection = await openFrames(greenhouse.address);
  sendUnaryCall(connection, 1, waterBedProcedure);
  await clock.waitFor(() => greenhouse.gateway.load.requests.http2 === 1, "requests");
  await clock.pass(2000);
  slow.resolve({});
  await clock.waitFor(() => greenhouse.gateway.load.requests.http2 === 0, "requests");
  await clock.pass(250);
  sendUnaryCall(connection, 3, waterBedProcedure);
  expect(await connection.readEnd(3)).toMatchObject({ kind: "responded", httpStatus: 200 });
});

test("on node:http2, a response's buffered bytes are counted until it is reset", async () => {
  const clock = useFakeClock();
  const note = "orders".repeat(100_000);
  await using greenhouse = await startOnNode({ waterBed: () => ({ note }) });
  using connection = await openFrames(greenhouse.address);
  sendUnaryCall(connection, 1, waterBedProcedure);
  await clock.waitFor(() => greenhouse.gateway.load.backlogBytes > 0, "buffered bytes");
  connection.send(resetFrame(1, ErrorCode.cancel));
  await clock.waitFor(() => greenhouse.gateway.load.requests.http2 === 0, "requests");
  expect(greenhouse.gateway.load.backlogBytes).toBe(0);
});

// Without a short timeout, the timeouts are checked once a second.
test.each([
  { limit: "idleTimeoutMs", sent: [], kind: "closed" },
  { limit: "requestTimeoutMs", sent: [headersFrame(1, grpcHeader(waterBedProcedure))], kind: "reset" },
])("on node:http2, a client is $kind soon after a short $limit", async ({ limit, sent, kind }) => {
  const clock = useFakeClock();
  await using greenhouse = await startOnNode({}, { limits: { [limit]: 100 } });
  using connection = await openFrames(greenhouse.address);
  connection.send(...sent);
  await expect
    .poll(() => greenhouse.gateway.load)
    .toMatchObject({
      connections: { http2: 1 },
      requests: { http2: sent.length },
    });
  await clock.pass(200);
  expect(await connection.readEnd(1)).toMatchObject({ kind });
});

test("on node:http2, a client that stays half-open is disconnected after a second", async () => {
  const clock = useFakeClock();
  await using greenhouse = await startOnNode({}, { limits: { idleTimeoutMs: 60_000, requestTimeoutMs: 400 } });
  using connection = await openFrames(greenhouse.address);
  connection.socket.allowHalfOpen = true;
  await clock.waitFor(() => greenhouse.gateway.load.connections.http2 === 1, "connections");
  await clock.pass(60_000);
  expect(await connection.readUntil(({ type }) => type === frameType.goAway)).toBeDefined();
  await clock.pass(900);
  expect(greenhouse.gateway.load.connections.http2).toBe(1);
  await clock.pass(200);
  await clock.waitFor(() => greenhouse.gateway.load.connections.http2 === 0, "connections");
});

test("on node:http2, the connection window is never smaller than 65,535 bytes", async () => {
  await using greenhouse = await startOnNode({}, { limits: { connectionWindowBytes: 1000 } });
  using connection = await openFrames(greenhouse.address);
  connection.send(headersFrame(1, postHeader()));
  for (let at = 0; at < 4; at += 1) connection.send(dataFrame(1, Buffer.alloc(16_000)));
  const update = await connection.readUntil(({ type, streamId }) => type === frameType.windowUpdate && streamId === 0);
  expect(update?.payload.readUInt32BE(0)).toBeGreaterThan(30_000);
});

test("on node:http2, a client that exceeds the announced limits is disconnected", async () => {
  const limits = { concurrentStreams: 2, connectionWindowBytes: 2 ** 21 };
  await using greenhouse = await startOnNode({ waterBed: () => new Promise(() => {}) }, { limits });
  using connection = await openFrames(greenhouse.address);
  const settings = await connection.readUntil(({ type, flags }) => type === frameType.settings && flags === 0);
  const values = new Map(
    Array.from({ length: (settings?.payload.byteLength ?? 0) / 6 }, (_, at) => [
      settings?.payload.readUInt16BE(6 * at),
      settings?.payload.readUInt32BE(6 * at + 2),
    ]),
  );
  expect(values.get(settingsConcurrentStreams)).toBe(2);
  expect(values.get(settingsInitialWindow)).toBe(256 * 1024);
  const window = await connection.readUntil(({ type, streamId }) => type === frameType.windowUpdate && streamId === 0);
  expect(window?.payload.readUInt32BE(0)).toBe(2 ** 21 - 65_535);
  for (const streamId of [1, 3, 5]) sendUnaryCall(connection, streamId, waterBedProcedure);
  expect(await connection.readEnd(5)).toMatchObject({ kind: "go-away", errorCode: ErrorCode.protocolError });
});

test("on node:http2, an error outside a call is reported and closes the connection", async () => {
  const { options, reported } = failingHooks();
  const server = nodeEngine.createHttp2Server(options);
  await using started = await startOnLoopback(createServer((socket) => void server.take(socket)));
  using connection = await openFrames(started.address);
  sendUnaryCall(connection, 1, waterBedProcedure);
  expect(await within(reported, "the report")).toBe("ERR_CONNECTION_FAILED");
  expect(await connection.readEnd(1)).toMatchObject({ kind: "closed" });
  server.close();
});
