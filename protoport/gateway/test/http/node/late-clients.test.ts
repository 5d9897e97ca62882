import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, onTestFinished, test, vi } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { fieldValue } from "../../../../testing/src/http/exchange.ts";
import { grpcHeader, sendUnaryCall } from "../../../../testing/src/http/grpc-frames.ts";
import { openHttp1 } from "../../../../testing/src/http/http1-connection.ts";
import {
  clientPreface,
  dataFrame,
  frame,
  frameBytes,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
  resetFrame,
} from "../../../../testing/src/http/http2-frames.ts";
import { waterBedProcedure } from "../../../../testing/src/gateway/greenhouse.ts";
import { startOnNode } from "../../../../testing/src/gateway/on-node.ts";

// Node checks timeouts only for servers that listen.

const path = "/beds/7:water";
const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
const wholeCall = `${head}content-length: 2\r\n\r\n{}`;
const watch = "/greenhouse.v1.GreenhouseService/WatchReadings";

/** Short, but longer than a request takes on a busy machine. */
const timeoutMs = 500;
const never = 60_000;

// The tests only wait, so they run concurrently.
describe.concurrent("a slow client on node:http", () => {
  test.for([
    { name: "an incomplete header", limits: { headerTimeoutMs: timeoutMs }, sent: head, httpStatus: 408 },
    {
      name: "an incomplete body",
      limits: { requestTimeoutMs: timeoutMs },
      sent: `${head}content-length: 2\r\n\r\n{`,
      httpStatus: 408,
    },
    {
      name: "an incomplete chunked body",
      limits: { requestTimeoutMs: timeoutMs },
      sent: `${head}transfer-encoding: chunked\r\n\r\n1\r\n{`,
      httpStatus: 408,
    },
  ])("gets $httpStatus for $name, and its connection is closed", async ({ limits, sent, httpStatus }, { expect }) => {
    let calls = 0;
    await using greenhouse = await startOnNode({ waterBed: () => ({ bed: BigInt((calls += 1)) }) }, { limits });
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(httpStatus);
    expect(fieldValue(response.header, "connection")).toBe("close");
    expect(await connection.atEnd()).toBe(true);
    expect(calls).toBe(0);
  });

  test("gets 408 for an incomplete second header", async ({ expect }) => {
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits: { headerTimeoutMs: timeoutMs } });
    using connection = await openHttp1(greenhouse.address);
    connection.write(wholeCall);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    connection.write("POST /beds");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 408 });
    expect(await connection.atEnd()).toBe(true);
  });

  test.for([
    { name: "first", sent: "" },
    { name: "second", sent: wholeCall },
  ])("that does not send its $name request is disconnected without a response", async ({ sent }, { expect }) => {
    const limits = { idleTimeoutMs: timeoutMs, headerTimeoutMs: timeoutMs };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits });
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    if (sent !== "") expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(await connection.atEnd()).toBe(true);
  });

  test("is served if it sends another request after the header timeout", async ({ expect }) => {
    // When a body ends after its response, the rest must not be parsed as the next request's head.
    const limits = { headerTimeoutMs: timeoutMs, requestTimeoutMs: never, idleTimeoutMs: never };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits, readMaxBytes: 10 });
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${head}content-length: 20\r\n\r\n{`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 413 });
    connection.write(`"note":"0123456789"}`.slice(0, 19));
    using other = await openHttp1(greenhouse.address);
    other.write("G");
    expect(await other.readResponse()).toMatchObject({ httpStatus: 408 });
    connection.write(wholeCall);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test.for([
    { name: "a response", target: path, type: "application/json", body: "{}" },
    { name: "a stream of messages", target: watch, type: "application/connect+json", body: "\0\0\0\0\x02{}" },
  ])(
    "that does not read $name is disconnected, and its call is cancelled",
    async ({ target, type, body }, { expect }) => {
      // More than the system buffers for a client that does not read.
      const bigText = "orders".repeat(3_000_000);
      await using greenhouse = await startOnNode(
        {
          waterBed: () => ({ note: bigText }),
          async *watchReadings() {
            for (;;) yield { sensor: bigText.slice(0, 100_000) };
          },
        },
        { limits: { idleTimeoutMs: timeoutMs } },
      );
      using connection = await openHttp1(greenhouse.address);
      connection.socket.pause();
      const length = `content-length: ${String(body.length)}`;
      connection.write(`POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\n${length}\r\n\r\n${body}`);
      await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBeGreaterThan(0);
      await expect.poll(() => greenhouse.gateway.load.connections.http1).toBe(0);
      expect(greenhouse.gateway.load).toMatchObject({ backlogBytes: 0, requests: { http1: 0 } });
      await greenhouse.completed(1);
    },
  );
});

describe.concurrent("a slow client on node:http2", () => {
  test("gets a reset for an incomplete body, and the handler does not run", async ({ expect }) => {
    let calls = 0;
    const limits = { requestTimeoutMs: timeoutMs, idleTimeoutMs: never };
    await using greenhouse = await startOnNode({ waterBed: () => ({ bed: BigInt((calls += 1)) }) }, { limits });
    using connection = await openFrames(greenhouse.address);
    connection.send(headersFrame(1, grpcHeader(waterBedProcedure)), dataFrame(1, Buffer.of(0)));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "reset", errorCode: ErrorCode.cancel });
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0 });
    expect(calls).toBe(0);
  });

  test("that opens no stream is disconnected", async ({ expect }) => {
    await using greenhouse = await startOnNode({}, { limits: { idleTimeoutMs: timeoutMs } });
    const { address: host, port } = greenhouse.address;
    const socket = connect({ host, port, allowHalfOpen: true });
    socket.on("error", () => {}).resume();
    const settings = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0)];
    socket.write(Buffer.concat([clientPreface, ...settings.map(frameBytes)]));
    await expect.poll(() => greenhouse.gateway.load.connections.http2).toBe(1);
    await expect.poll(() => greenhouse.gateway.load.connections.http2).toBe(0);
    socket.destroy();
  });

  test("that does not read a response is disconnected, and its call is reported", async ({ expect }) => {
    const note = "orders".repeat(100_000);
    const limits = { idleTimeoutMs: timeoutMs };
    await using greenhouse = await startOnNode({ waterBed: () => ({ note }) }, { limits });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBeGreaterThan(0);
    expect((await connection.readEnd(1)).kind).not.toBe("responded");
    await greenhouse.completed(1);
    expect(greenhouse.gateway.load).toMatchObject({ backlogBytes: 0, requests: { http2: 0 } });
  });

  test("that does not read after a reset is disconnected", async ({ expect }) => {
    // More than the system buffers for a client that does not read.
    const note = "orders".repeat(3_000_000);
    const limits = { idleTimeoutMs: timeoutMs };
    await using greenhouse = await startOnNode({ waterBed: () => ({ note }) }, { limits });
    using connection = await openFrames(greenhouse.address);
    connection.socket.pause();
    const window = Buffer.of(0x7f, 0xff, 0xff, 0xff);
    const settings = frame(frameType.settings, 0, 0, Buffer.concat([Buffer.of(0, 4), window]));
    const update = frame(frameType.windowUpdate, 0, 0, Buffer.of(0x7f, 0xff, 0, 0));
    connection.send(settings, update);
    sendUnaryCall(connection, 1, waterBedProcedure);
    await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBeGreaterThan(0);
    connection.send(resetFrame(1, ErrorCode.cancel));
    await expect.poll(() => greenhouse.gateway.load.connections.http2).toBe(0);
    expect(greenhouse.gateway.load).toMatchObject({ backlogBytes: 0, requests: { http2: 0 } });
  });

  test("stays connected while it waits for a handler", async ({ expect }) => {
    const slow = Promise.withResolvers<{ bed: bigint }>();
    const limits = { idleTimeoutMs: timeoutMs, requestTimeoutMs: timeoutMs };
    await using greenhouse = await startOnNode({ waterBed: () => slow.promise }, { limits });
    using connection = await openFrames(greenhouse.address);
    sendUnaryCall(connection, 1, waterBedProcedure);
    // Another connection gets GOAWAY in the meantime, which shows that the timer runs.
    using silent = await openFrames(greenhouse.address);
    expect(await silent.readUntil(({ type }) => type === frameType.goAway)).toBeDefined();
    slow.resolve({ bed: 7n });
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded", httpStatus: 200 });
  });
});

// Without a short timeout, the timeouts are checked once a second.
test.for([
  { limit: "headerTimeoutMs", sent: head },
  { limit: "requestTimeoutMs", sent: `${head}content-length: 2\r\n\r\n{` },
])("on node:http, a client gets 408 soon after a short $limit", async ({ limit, sent }, { expect }) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  await using greenhouse = await startOnNode({}, { limits: { [limit]: 100 } });
  using connection = await openHttp1(greenhouse.address);
  connection.write(sent);
  await expect.poll(() => greenhouse.gateway.load.connections.http1).toBe(1);
  for (let passedMs = 0; passedMs < 200; passedMs += 25) {
    vi.advanceTimersByTime(25);
    await nextTurn();
  }
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 408 });
});
