import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
// oxfmt-ignore
import { createTestGateway, eventsOf, fieldValue, type HttpVersion, initializedRequest, KeptConnections, openHttp1,
  reasonOf, startGreenhouse, type TestGreenhouse, toolNameOf, waterBedProcedure, within } from "@protoport/testing";

// A server stream as a tool sends progress notifications, then one result with all messages.

const watch = "greenhouse_v1_GreenhouseService_WatchReadings";

interface Case {
  readonly name: string;
  readonly arguments: object;
  readonly meta?: object;
  readonly httpStatus?: number;
  /** The events, or a response's JSON without events. */
  readonly response: unknown;
  readonly code?: Code;
}

const reading = (degreesCelsius: number): object => ({ sensor: "a", degreesCelsius });

function structured(count: number): { messages: object[] } {
  return { messages: Array.from({ length: count }, (_, at) => reading(at + 1)) };
}

function content(...texts: readonly string[]): { content: object[] } {
  return { content: texts.map((text) => ({ type: "text", text })) };
}

const result = (members: object): object => ({ jsonrpc: "2.0", id: 1, result: members });

const success = (count: number): object =>
  result({ ...content(JSON.stringify(structured(count))), structuredContent: structured(count) });

function failure(message: string, count: number): object {
  const texts = content(message, JSON.stringify(structured(count)));
  return result({ ...texts, structuredContent: structured(count), isError: true });
}

function progress(token: unknown, count: number): object[] {
  return Array.from({ length: count }, (_, at) => ({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken: token, progress: at + 1, message: JSON.stringify(reading(at + 1)) },
  }));
}

const tooLong = "RESOURCE_EXHAUSTED: the stream was ended after 1000 bytes; a result cannot contain more";
const tooManyBytes = result({ ...content(tooLong), isError: true });

// oxfmt-ignore
const cases: readonly Case[] = [
  { name: "only a result without a progress token", arguments: { count: 2 }, response: [success(2)] },
  { name: "progress and a result for a progress token", arguments: { count: 2 }, meta: { progressToken: "a" },
    response: [...progress("a", 2), success(2)] },
  { name: "progress for a token that is a number", arguments: { count: 1 }, meta: { progressToken: 7 },
    response: [...progress(7, 1), success(1)] },
  { name: "no progress for a token that is an object", arguments: { count: 1 }, meta: { progressToken: {} },
    response: [success(1)] },
  { name: "an empty result for a stream without messages", arguments: { count: 0 }, response: [success(0)] },
  { name: "delayed messages as separate progress notifications", arguments: { sensor: "slow", count: 2 },
    meta: { progressToken: "a" }, response: [...progress("a", 2), success(2)] },
  { name: "RESOURCE_EXHAUSTED for more messages than the limit", arguments: { count: -1 },
    response: [failure("RESOURCE_EXHAUSTED: the stream was ended after 5 messages; a result cannot contain more", 5)],
    code: Code.ResourceExhausted },
  { name: "RESOURCE_EXHAUSTED for more bytes than the limit", arguments: { sensor: "large", count: 3 },
    response: tooManyBytes, code: Code.ResourceExhausted },
  { name: "RESOURCE_EXHAUSTED if only the UTF-8 bytes exceed the limit", arguments: { sensor: "wide", count: 1 },
    response: tooManyBytes, code: Code.ResourceExhausted },
  { name: "the error of a stream that fails before its first message", arguments: { sensor: "broken", count: 0 },
    response: result({ ...content("ABORTED: broken"), isError: true }), code: Code.Aborted },
  { name: "the error of a stream that fails after a message", arguments: { sensor: "broken", count: 1 },
    response: [failure("ABORTED: broken", 1)], code: Code.Aborted },
  { name: "DEADLINE_EXCEEDED for a stream that exceeds timeoutMs", arguments: { sensor: "idle", count: 1 },
    response: [failure("DEADLINE_EXCEEDED: the operation timed out", 1)], code: Code.DeadlineExceeded },
];

const servers: readonly { name: string; version: HttpVersion; create: typeof createGateway }[] = [
  { name: "the engine", version: "1.1", create: createTestGateway },
  { name: "node:http2", version: "2", create: createGateway },
];

/** Sensors whose messages are over the limit of 1000 bytes. */
const longNames = new Map(Object.entries({ large: "x".repeat(1000), wide: "€".repeat(400) }));
let begun = Promise.withResolvers<HandlerContext>();

async function* watchReadings(
  { sensor, count }: { sensor: string; count: number },
  context: HandlerContext,
): AsyncGenerator<object> {
  begun.resolve(context);
  for (let at = 0; at !== count; at += 1) {
    if (sensor === "slow") await new Promise((resolve) => setTimeout(resolve, 5));
    const longName = longNames.get(sensor);
    yield longName === undefined ? reading(at + 1) : { sensor: longName };
  }
  if (sensor === "broken") throw new ConnectError("broken", Code.Aborted);
  if (sensor === "idle") await new Promise(() => {});
}

describe.each(servers)("a tool for a server stream, on $name", ({ version, create }) => {
  let greenhouse: TestGreenhouse;
  let connections: KeptConnections;

  beforeAll(async () => {
    connections = new KeptConnections();
    const stream = { maxMessages: 5, maxBytes: 1000, timeoutMs: 300 };
    const mcp = createMcp({ tools: ["greenhouse.v1.GreenhouseService.WatchReadings"], stream });
    greenhouse = await startGreenhouse({ watchReadings }, { mcp }, {}, create);
  });

  afterAll(async () => {
    connections[Symbol.dispose]();
    await greenhouse[Symbol.asyncDispose]();
  });

  test.each(cases)("returns $name", async ({ arguments: args, meta, httpStatus = 200, response, code }) => {
    const before = greenhouse.completedRequests.length;
    const request = initializedRequest("tools/call", { name: watch, arguments: args, _meta: meta });
    const actual = await connections.exchange(greenhouse.address, version, request);
    const body = String(actual.body);
    const isStream = Array.isArray(response);
    const want = { httpStatus, response };
    expect({ httpStatus: actual.httpStatus, response: isStream ? eventsOf(body) : JSON.parse(body) }).toEqual(want);
    expect(fieldValue(actual.header, "content-type")).toBe(isStream ? "text/event-stream" : "application/json");
    expect(fieldValue(actual.header, "x-accel-buffering")).toBe(isStream ? "no" : undefined);
    const reported = await greenhouse.completed(before + 1);
    expect(reported).toMatchObject({ procedure: "/greenhouse.v1.GreenhouseService/WatchReadings", protocol: "mcp" });
    expect(reported.error?.code).toBe(code);
  });

  test("is cancelled when the client disconnects", async () => {
    begun = Promise.withResolvers<HandlerContext>();
    using connection = await openHttp1(greenhouse.address);
    connection.request(initializedRequest("tools/call", { name: watch, arguments: { sensor: "idle", count: 1 } }));
    const { signal } = await within(begun.promise, "the handler");
    connection.socket.resetAndDestroy();
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
  });
});

test.each([
  { name: "no timeout by default", limits: {}, minMs: Infinity, maxMs: Infinity },
  { name: "the gateway's default timeout", limits: { defaultTimeoutMs: 60_000 }, minMs: 40_000, maxMs: 60_000 },
])("a unary tool has $name, and ignores stream.timeoutMs", async ({ limits, minMs, maxMs }) => {
  let timeoutMs = 0;
  using connections = new KeptConnections();
  await using greenhouse = await startGreenhouse(
    { waterBed: (_, context) => ((timeoutMs = context.timeoutMs() ?? Infinity), {}) },
    { limits, mcp: createMcp({ tools: ["greenhouse.v1.*"], stream: { timeoutMs: 5_000 } }) },
  );
  const request = initializedRequest("tools/call", { name: toolNameOf(waterBedProcedure), arguments: {} });
  expect(await connections.exchange(greenhouse.address, "1.1", request)).toMatchObject({ httpStatus: 200 });
  // The handler gets the remaining time.
  expect(timeoutMs).toBeGreaterThanOrEqual(minMs);
  expect(timeoutMs).toBeLessThanOrEqual(maxMs);
});
