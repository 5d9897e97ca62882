import { once } from "node:events";
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { createServer as createHttp2Server, constants } from "node:http2";
import { createServer } from "node:net";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport, type GrpcTransportOptions } from "../../../../src/client/index.ts";
import { encodeRequestFields, noFields } from "../../../../src/client/request-fields.ts";
import { BlockEncoder, encodeVarying, StableFields } from "../../../../../gateway/src/engine/http2/hpack/encoder.ts";
import { type Frame, frame, frameType, listenOnLoopback, startOnLoopback } from "@protoport/testing/http";
import { retainedBytes, waitSomeTurns, within } from "@protoport/testing/process";
import { grpcResponse, respondWatered, startScriptedServer, watered } from "@protoport/testing/proxy";

afterEach(() => void vi.useRealTimers());

interface TestClient extends AsyncDisposable {
  readonly greenhouse: Client<typeof GreenhouseService>;
}

function clientOf(baseUrl: string, options: Partial<GrpcTransportOptions> = {}): TestClient {
  const transport = createGrpcTransport({ baseUrl, ...options });
  return {
    greenhouse: createClient(GreenhouseService, transport),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

/** Makes concurrent calls, and counts the calls by code ("ok" for success). */
async function callMany({ greenhouse }: TestClient, count: number): Promise<Record<string, number>> {
  const call = (_: unknown, i: number): Promise<string> =>
    greenhouse.waterBed({ bed: BigInt(i) }).then(
      () => "ok",
      (error: unknown) => Code[ConnectError.from(error).code] ?? "?",
    );
  const outcomes = await within(Promise.all(Array.from({ length: count }, call)), `${count} calls`);
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function goAway(lastStreamId: number): Frame {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStreamId, 0);
  return frame(frameType.goAway, 0, 0, payload);
}

test("no call is lost when a server sends GOAWAY every ten calls", async () => {
  let processed = 0;
  await using server = await startScriptedServer({
    request: (connection, id) => {
      const last = 10 * 2 - 1;
      // The server does not process streams after the last one that GOAWAY names.
      if (id > last) return;
      processed++;
      connection.send(...grpcResponse(id, watered));
      if (connection.requests === 10) connection.send(goAway(last));
    },
  });
  await using client = clientOf(server.baseUrl);
  for (let round = 0; round < 10; round++) expect(await callMany(client, 15)).toEqual({ ok: 15 });
  expect(processed).toBe(150);
  expect(server.connections).toBeGreaterThan(10);
});

test.each([0, -1, Number.POSITIVE_INFINITY])("timeoutMs %d disables the default deadline", async (timeoutMs) => {
  const limited: boolean[] = [];
  await using server = await nodeServer({}, (headers) => limited.push("grpc-timeout" in headers));
  await using client = clientOf(server.baseUrl, { defaultTimeoutMs: 5_000 });
  await client.greenhouse.waterBed({});
  await client.greenhouse.waterBed({}, { timeoutMs });
  await client.greenhouse.recordReadings((async function* () {})()).catch(() => undefined);
  expect(limited).toEqual([true, false, true]);
  const call = client.greenhouse.waterBed({}, { timeoutMs: Number.NaN });
  await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument });
});

test("calls to an unreachable server fail immediately without reconnecting during backoff", async () => {
  // A long interval, so that the result does not depend on the periodic check.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const server = createServer();
  const baseUrl = await listenOnLoopback(server);
  server.close();
  await once(server, "close");
  await using client = clientOf(baseUrl);
  const calls = [client.greenhouse.waterBed({}), client.greenhouse.waterBed({})];
  const outcomes = calls.map((call) => call.catch((error: unknown) => ConnectError.from(error)));
  const [first, second] = await Promise.all(outcomes);
  const rawMessage: unknown = expect.stringMatching(/^cannot connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  expect(first).toMatchObject({ rawMessage });
  // Separate errors, because code that catches one may change it.
  expect(first).not.toBe(second);
  // The server can be reached now, but the backoff has not passed.
  let connections = 0;
  const late = createServer(() => connections++);
  late.listen(Number(new URL(baseUrl).port), "127.0.0.1");
  await once(late, "listening");
  expect([await callMany(client, 3), connections]).toEqual([{ Unavailable: 3 }, 0]);
  late.close();
});

test.each([
  ["at its deadline", { timeoutMs: 50 }, false, Code.DeadlineExceeded, undefined],
  ["when its signal is aborted", {}, true, Code.Canceled, undefined],
  ["when its signal is aborted during an interceptor", {}, true, Code.Canceled, true],
])("%s, a call to a silent server fails and resets its stream", async (_name, options, abort, want, intercepts) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const controller = new AbortController();
  const reset = Promise.withResolvers<number>();
  await using server = await startScriptedServer({
    frame: (_, { type, payload }) => {
      if (type === frameType.resetStream) reset.resolve(payload.readUInt32BE(0));
    },
    request: () => {
      if (abort) controller.abort();
      else vi.advanceTimersByTime(50);
    },
  });
  await using client = clientOf(server.baseUrl, intercepts === true ? { interceptors: [(next) => next] } : {});
  const call = client.greenhouse.waterBed({}, { ...options, signal: controller.signal });
  await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: want });
  expect(await within(reset.promise, "RST_STREAM")).toBe(constants.NGHTTP2_CANCEL);
});

test("a missing PING acknowledgement during a call closes the connection", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const second = Promise.withResolvers<void>();
  const ping = Promise.withResolvers<void>();
  await using server = await startScriptedServer({
    frame: (_, { type }) => type === frameType.ping && ping.resolve(),
    request: (connection, id) => {
      if (connection.requests === 1) connection.send(...grpcResponse(id, watered));
      else second.resolve();
    },
  });
  const pings = (): number => server.frames.filter(({ type }) => type === frameType.ping).length;
  await using client = clientOf(server.baseUrl, { keepaliveMs: 20 });
  await client.greenhouse.waterBed({});
  vi.advanceTimersByTime(60);
  const waiting = callMany(client, 1);
  // A PING sent before the request would have arrived before the request.
  await within(second.promise, "the second request");
  expect(pings()).toBe(0);
  vi.advanceTimersByTime(10);
  await within(ping.promise, "a PING");
  vi.advanceTimersByTime(200);
  expect([await waiting, pings()]).toEqual([{ Unavailable: 1 }, 1]);
});

test("a client without calls sends no PING", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  await using server = await startScriptedServer(respondWatered);
  await using client = clientOf(server.baseUrl, { keepaliveMs: 20 });
  for (const call of [1, 2, 3]) {
    await client.greenhouse.waterBed({});
    expect(server.requests).toBe(call);
    // A timer's callback runs in a later turn than the one in which the timer is due.
    for (let passed = 0; passed < 20; passed += 1) {
      vi.advanceTimersByTime(10);
      await waitSomeTurns();
    }
  }
  // A PING sent before the last call would have arrived before the call.
  expect([server.connections, server.frames.filter(({ type }) => type === frameType.ping)]).toEqual([1, []]);
});

test("responses larger than the connection window arrive completely", async () => {
  const note = "y".repeat(40_000);
  await using server = await nodeServer({});
  await using client = clientOf(server.baseUrl);
  for (let i = 0; i < 40; i++) expect((await client.greenhouse.waterBed({ note })).note).toBe(note);
});

/** Starts a node:http2 server that echoes requests. Its HPACK implementation is nghttp2's. */
async function nodeServer(
  settings: Parameters<typeof createHttp2Server>[0],
  onHeaders: (headers: IncomingHttpHeaders) => void = () => undefined,
): Promise<AsyncDisposable & { readonly baseUrl: string; readonly paths: Set<string> }> {
  const server: Http2Server = createHttp2Server(settings ?? {});
  const paths = new Set<string>();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    onHeaders(headers);
    paths.add(`${headers[":path"]} ${String(headers["te"])} ${String(headers["x-a"])}`);
    const pieces: Buffer[] = [];
    stream.on("error", () => undefined);
    stream
      .on("data", (piece: Buffer) => pieces.push(piece))
      .on("end", () => {
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.end(Buffer.concat(pieces));
      });
  });
  return { ...(await startOnLoopback(server)), paths };
}

test.each([0, 31, 64, 128, 300, 4096, 65_536])(
  "nghttp2 decodes fields with a table limit of %i bytes",
  async (headerTableSize) => {
    await using server = await nodeServer({ settings: { headerTableSize } });
    await using client = clientOf(server.baseUrl);
    for (let i = 0; i < 20; i++) {
      const call = i % 2 === 0 ? client.greenhouse.waterBed : client.greenhouse.getReading;
      await within<unknown>(call({}, { headers: { "x-a": String(i % 3), authorization: "Bearer x" } }), "a call");
    }
    const paths = ["WaterBed", "GetReading"].map((name) => `/greenhouse.v1.GreenhouseService/${name} trailers`);
    const wanted = paths.flatMap((path) => [0, 1, 2].map((a) => `${path} ${a}`));
    expect([...server.paths].toSorted()).toEqual(wanted.toSorted());
  },
);

const encoder = new BlockEncoder();
encoder.applyTableSize(4096);

test.each([
  { what: "header sections", encode: (i: number) => encoder.encode(new StableFields([":path", `/head/${i}`])) },
  { what: "deadlines", encode: (i: number) => encodeRequestFields(noFields, i, 0) },
])("the encoder retains no memory for many different $what in requests", async ({ encode }) => {
  const count = 5_000;
  const before = await retainedBytes();
  for (let i = 0; i < count; i++) expect(encode(i).byteLength).toBeGreaterThan(0);
  expect(((await retainedBytes()) - before) / count).toBeLessThan(50);
});

test("HPACK encodes credentials as never indexed, and other fields without indexing", () => {
  expect([encodeVarying(["authorization", "Bearer x"])[0], encodeVarying(["x-a", "1"])[0]]).toEqual([0x1f, 0x00]);
  expect(() => encodeVarying(["x-a", "1\r\n"])).toThrow(TypeError);
});
