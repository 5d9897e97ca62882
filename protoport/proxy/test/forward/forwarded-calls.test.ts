import { gunzipSync } from "node:zlib";
import { Code, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { errorCodeOf } from "../../../gateway/src/index.ts";
import type { PieceDecompression } from "../../../gateway/src/protocols/envelope/compression.ts";
// oxfmt-ignore
import { type CallEnd, createProxy, type MethodSettings, type ProxiedUpstreamOptions, type ProxyGateway,
  type ProxyOptions } from "../../src/create-proxy.ts";
import { descriptorSetOf, encodeEnvelope, grpcHead, startScriptedServer } from "@protoport/testing/proxy";
import { frameFlag, frameType, headersFrame, shared, startGreenhouse } from "@protoport/testing";
import { exchangeFetch, type HttpRequest, openFetchUpload } from "@protoport/testing/http";

const descriptors = descriptorSetOf(GreenhouseService.file);
const json = ["content-type", "application/json"] as const;
const water: HttpRequest = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.from("{}") };
const once = { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };

async function openProxy(options: ProxyOptions): Promise<Pick<ProxyGateway, "fetch"> & AsyncDisposable> {
  const proxy = await createProxy(options);
  return { fetch: proxy.fetch, [Symbol.asyncDispose]: () => proxy.close() };
}

test.each<{ name: string; interceptors: Interceptor[] }>([
  { name: "without interceptors", interceptors: [] },
  { name: "with an interceptor", interceptors: [(next) => (request) => next(request)] },
])("a call $name is not forwarded after the shutdown signal", async ({ interceptors }) => {
  const faults: unknown[] = [];
  const errors: object[] = [];
  await using proxy = await openProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }],
    interceptors,
    shutdownSignal: AbortSignal.abort(new Error("the server shuts down")),
    onError: (_, error) => void errors.push({ code: error.code, errorCode: errorCodeOf(error) }),
    onFault: (error) => void faults.push(error),
  });
  expect((await exchangeFetch(proxy.fetch, water)).httpStatus).toBe(500);
  expect(errors).toEqual([{ code: Code.Internal, errorCode: "ERR_HANDLER_FAILED" }]);
  expect(faults).toMatchObject([{ message: "the server shuts down" }]);
});

test("a response above the proxy's writeMaxBytes is refused while it is read", async () => {
  await using greenhouse = await startGreenhouse({ waterBed: ({ note }) => ({ note }) });
  const { address, port } = greenhouse.address;
  const errors: string[] = [];
  await using proxy = await openProxy({
    upstreams: [{ upstream: `http://${address}:${port}`, descriptors }],
    writeMaxBytes: 1_000,
    onError: (_, { rawMessage }) => void errors.push(rawMessage),
  });
  const statusOf = async (bytes: number): Promise<number> => {
    const body = Buffer.from(JSON.stringify({ note: "x".repeat(bytes) }));
    return (await exchangeFetch(proxy.fetch, { ...water, body })).httpStatus;
  };
  expect([await statusOf(900), await statusOf(1_001)]).toEqual([200, 429]);
  expect(errors).toEqual(["the response is larger than 1000 bytes"]);
});

let timeoutMs: number | undefined;
const record = (_: unknown, context: HandlerContext): object => {
  timeoutMs = context.timeoutMs();
  return {};
};
async function* recordStream(_: unknown, context: HandlerContext): AsyncGenerator<object> {
  yield record(_, context);
}
const upstream = shared(() =>
  startGreenhouse({
    waterBed: record,
    recordReadings: async (_, context) => record(_, context),
    watchReadings: recordStream,
    controlClimate: recordStream,
  }),
);

type TimeoutOptions = Pick<ProxiedUpstreamOptions, "timeoutMs" | "maxTimeoutMs">;

test.each<[name: string, restMs: number, connectMs: number, options: TimeoutOptions, own?: MethodSettings]>([
  ["no timeoutMs", 15_000, Infinity, {}],
  ["maxTimeoutMs", 60_000, 60_000, { maxTimeoutMs: 60_000 }],
  ["timeoutMs", 8_000, 8_000, { timeoutMs: 8_000 }],
  ["timeoutMs 0", Infinity, Infinity, { timeoutMs: 0 }],
  ["timeoutMs 0 and maxTimeoutMs", 60_000, 60_000, { timeoutMs: 0, maxTimeoutMs: 60_000 }],
  ["a shorter timeoutMs of methodSettings", 8_000, 8_000, { timeoutMs: 40_000 }, { timeoutMs: 8_000 }],
  ["a longer timeoutMs of methodSettings", 40_000, 40_000, { timeoutMs: 8_000 }, { timeoutMs: 40_000 }],
  ["a shorter maxTimeoutMs of methodSettings", 20_000, 20_000, { maxTimeoutMs: 60_000 }, { maxTimeoutMs: 20_000 }],
  ["a longer maxTimeoutMs of methodSettings", 60_000, 60_000, { maxTimeoutMs: 20_000 }, { maxTimeoutMs: 60_000 }],
  ["a timeoutMs of methodSettings above the maximum", 20_000, 20_000, { maxTimeoutMs: 20_000 }, { timeoutMs: 60_000 }],
])("with $0, calls without a deadline get $1 ms over REST, $2 ms over Connect", async (...row) => {
  const [, restMs, connectMs, options, own] = row;
  const address = `http://127.0.0.1:${upstream.address.port}`;
  const upstreams = [{ upstream: address, descriptors, ...options, ...(own && { methodSettings: () => own }) }];
  await using proxy = await openProxy({ upstreams });
  for (const [path, wantMs] of [
    ["/beds/7:water", restMs],
    [`/${GreenhouseService.typeName}/WaterBed`, connectMs],
  ] as const) {
    expect((await exchangeFetch(proxy.fetch, { ...water, path })).httpStatus).toBe(200);
    const ms = timeoutMs ?? Infinity;
    // The remaining time is forwarded.
    expect({ ms, isWanted: ms <= wantMs && (ms > wantMs - 5_000 || ms === wantMs) }).toEqual({ ms, isWanted: true });
  }
});

const streaming = { contentType: "application/connect+json", body: encodeEnvelope(0, Buffer.from("{}")) };
const connectCalls = [
  { kind: "unary", rpc: "WaterBed", contentType: "application/json", body: Buffer.from("{}") },
  { kind: "server-streaming", rpc: "WatchReadings", ...streaming },
  { kind: "client-streaming", rpc: "RecordReadings", ...streaming },
  { kind: "bidirectional", rpc: "ControlClimate", ...streaming },
];

test.each(connectCalls)(
  "maxTimeoutMs limits only longer deadlines of $kind calls",
  async ({ rpc, contentType, body }) => {
    const address = `http://127.0.0.1:${upstream.address.port}`;
    await using proxy = await openProxy({ upstreams: [{ upstream: address, descriptors, maxTimeoutMs: 60_000 }] });
    for (const [callerMs, mostMs] of [
      [30_000, 30_000],
      [90_000, 60_000],
    ] as const) {
      const fields = Object.entries({ "content-type": contentType, "connect-timeout-ms": String(callerMs) });
      const call = { httpMethod: "POST", path: `/${GreenhouseService.typeName}/${rpc}`, header: fields, body };
      expect((await exchangeFetch(proxy.fetch, call)).httpStatus).toBe(200);
      // The remaining time is forwarded.
      expect(timeoutMs).toBeLessThanOrEqual(mostMs);
      expect(timeoutMs).toBeGreaterThan(mostMs - 20_000);
    }
  },
);

test.each([
  { name: "limits.defaultTimeoutMs", limits: { defaultTimeoutMs: 60_000 }, options: {} },
  { name: "the upstream's timeoutMs", limits: {}, options: { timeoutMs: 60_000, maxTimeoutMs: 90_000 } },
])("$name limits forwarded unary calls but not streams", async ({ limits, options }) => {
  const address = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await openProxy({ upstreams: [{ upstream: address, descriptors, ...options }], limits });
  const timeouts: unknown[] = [];
  for (const { rpc, contentType, body } of connectCalls) {
    const header = [["content-type", contentType]] as const;
    const call = { httpMethod: "POST", path: `/${GreenhouseService.typeName}/${rpc}`, header, body };
    expect((await exchangeFetch(proxy.fetch, call)).httpStatus).toBe(200);
    timeouts.push(timeoutMs);
  }
  expect(timeouts).toEqual([expect.any(Number), undefined, undefined, undefined]);
});

test.each([{ limits: {} }, { limits: { headerBytes: undefined } as object }])(
  "with the limits $limits, header fields may have 60 KiB",
  async ({ limits }) => {
    const address = `http://127.0.0.1:${upstream.address.port}`;
    await using proxy = await openProxy({ upstreams: [{ upstream: address, descriptors }], limits });
    // A field that is not forwarded, because the upstream accepts 16 KiB.
    const header = [json, ["grpc-long", "x".repeat(60 * 1024)]] as const;
    expect((await exchangeFetch(proxy.fetch, { ...water, header })).httpStatus).toBe(200);
  },
);

test("a message of 5 MiB is forwarded both ways if only readMaxBytes is set, to 8 MiB", async () => {
  const [readMaxBytes, note] = [8 * 1024 * 1024, "x".repeat(5 * 1024 * 1024)];
  await using large = await startGreenhouse({ waterBed: (request) => ({ note: request.note }) }, { readMaxBytes });
  const upstreams = [{ upstream: `http://127.0.0.1:${large.address.port}`, descriptors }];
  await using proxy = await openProxy({ upstreams, readMaxBytes });
  const response = await exchangeFetch(proxy.fetch, { ...water, body: Buffer.from(JSON.stringify({ note })) });
  expect([response.httpStatus, response.body.toString() === JSON.stringify({ note })]).toEqual([200, true]);
});

test.each([
  { retry: "off", own: { ...once, retryableCodes: [Code.NotFound] }, requests: 2 },
  { retry: { ...once, retryableCodes: [Code.NotFound] }, own: "off", requests: 1 },
  { retry: { ...once, retryableCodes: [Code.NotFound] }, own: undefined, requests: 2 },
] as const)("methodSettings with retry $own override $retry of the upstream", async ({ retry, own, requests }) => {
  await using server = await startScriptedServer({
    request: (connection, id) =>
      connection.send(headersFrame(id, [...grpcHead, ["grpc-status", "5"]], frameFlag.endStream)),
  });
  const methodSettings = (): MethodSettings => ({ retry: own });
  const upstreams = [{ upstream: server.baseUrl, descriptors, retry, methodSettings }];
  await using proxy = await openProxy({ upstreams });
  expect([(await exchangeFetch(proxy.fetch, water)).httpStatus, server.requests]).toEqual([404, requests]);
});

function failToSet(): never {
  throw new Error("no token");
}

test("onUpstreamCall reports a call whose header fields cannot be set", async () => {
  const ends: CallEnd[] = [];
  await using proxy = await openProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors, requestHeader: { set: failToSet } }],
    onUpstreamCall: () => (end) => void ends.push(end),
    onFault: () => undefined,
  });
  expect((await exchangeFetch(proxy.fetch, water)).httpStatus).toBe(500);
  expect(ends).toMatchObject([{ error: { rawMessage: "no token" } }]);
});

test("a call that fails during its compressed upload aborts the decoder", async () => {
  await using server = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      const failure = headersFrame(streamId, [...grpcHead, ["grpc-status", "5"]], frameFlag.endStream);
      if (type === frameType.data) connection.send(failure);
    },
  });
  const signals: AbortSignal[] = [];
  const coding: PieceDecompression = {
    name: "gzip",
    compress: async (bytes) => new Uint8Array(bytes),
    decompress: async (bytes) => new Uint8Array(gunzipSync(bytes)),
    decodePieces(pieces, _freeBytes, signal) {
      signals.push(signal);
      return pieces;
    },
  };
  const selector = `${GreenhouseService.typeName}.RecordReadings`;
  const rules = [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" } as const];
  const upstreams = [{ upstream: server.baseUrl, descriptors }];
  await using proxy = await openProxy({ upstreams, acceptCompression: [coding], rest: { rules } });
  const header = Object.entries({ "content-type": "application/x-ndjson", "content-encoding": "gzip" });
  const upload = openFetchUpload(proxy.fetch, ["POST", "/readings"], header);
  upload.write('{"sensor":"a"}\n');
  expect([(await upload.readResponse()).httpStatus, signals.map(({ aborted }) => aborted)]).toEqual([404, [true]]);
  upload.reset();
});

const names = ["x-user", "x_user", "x-auth-request-email", "remote-user", "zone"];

test.each([
  { name: "allow contains the field", rules: { allow: ["*", ...names] }, want: ",,,ada,root" },
  { name: "rename sets the field", rules: { rename: { "x-sso-user": "x-user", "x-place": "zone" } }, want: ",,,,root" },
])("Grpc-Metadata-Name sets no field that identifies the caller, even if $name", async ({ rules, want }) => {
  await using greenhouse = await startGreenhouse({
    getReading: (_, { requestHeader }) => ({ sensor: names.map((name) => requestHeader.get(name)).join() }),
  });
  const { address, port } = greenhouse.address;
  const upstreams = [{ upstream: `http://${address}:${port}`, descriptors, requestHeader: rules }];
  await using proxy = await openProxy({ upstreams, rest: { profile: "grpc-gateway" } });
  const sent = [...names, "x-sso-user", "x-place"];
  const header = [["Remote-User", "ada"] as const, ...sent.map((name) => [`Grpc-Metadata-${name}`, "root"] as const)];
  const { body } = await exchangeFetch(proxy.fetch, { httpMethod: "GET", path: "/sensors/a/reading", header });
  expect(JSON.parse(String(body))).toMatchObject({ sensor: want });
});
