import { once } from "node:events";
import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { describe, expect, test, vi } from "vitest";
import { WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { dataFrame, encodeEnvelope, exchange, type Field, fieldValue, frameFlag, frameType, grpcHeader, headersFrame,
  http2Servers, type HttpRequest, type HttpVersion, openFrames, openGreenhouse, readOutcome, rpcRequest,
  startGreenhouse, throws, waterBedProcedure, wireFormats } from "@protoport/testing";
import { createFaultReporter, guardCallback } from "../../src/serve/faults.ts";
import { settingFrame } from "../../../testing/src/http2/http2-requests.ts";

const json: Field = ["content-type", "application/json"];
const unknownField = Buffer.from('{"unknown":1}');
const water: HttpRequest = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: unknownField };
const watchPath = "/greenhouse.v1.GreenhouseService/WatchReadings";
const stream: Field = ["content-type", "application/connect+json"];
const envelope = encodeEnvelope(0, Buffer.from("{}"));
const watch: HttpRequest = { httpMethod: "POST", path: watchPath, header: [stream], body: envelope };
const tenantKey = createContextKey<string | undefined>(undefined);
const both: readonly HttpVersion[] = ["1.1", "2"];
type Fault = { readonly error: unknown; readonly what: string };

/** Returns options that collect the reported faults. */
function collecting(faults: Fault[]): Pick<GatewayOptions, "onFault"> {
  return { onFault: (error, what) => void faults.push({ error, what }) };
}

async function* yielding(message: object): AsyncGenerator<object> {
  yield message;
}

/** Returns a function that rejects, which the callbacks' types allow. */
const rejects =
  (error: Error): (() => unknown) =>
  () =>
    Promise.reject(error);

const failure = new Error("no metrics today");
const secret = throws(new Error("secret"));
const unreadableErrors = [
  { name: "name", create: () => Object.defineProperty(new Error(), "name", { get: secret }) },
  { name: "message", create: () => Object.defineProperty(new Error(), "message", { get: secret }) },
  { name: "stack", create: () => Object.defineProperty(new Error(), "stack", { get: secret }) },
  { name: "class", create: () => new Proxy(new Error(), { getPrototypeOf: secret }) },
];
const service = () => ({ lenient: true });

test.each<[name: string, options: Partial<GatewayOptions>, what: string]>([
  ["onResponse throws", { rest: { service }, onResponse: throws(failure) }, "onResponse failed"],
  ["onIgnored throws", { rest: { service, onIgnored: throws(failure) } }, "rest.onIgnored failed"],
  ["onIgnored rejects", { rest: { service, onIgnored: rejects(failure) } }, "rest.onIgnored failed"],
])("a callback that fails is reported once and changes no response (%s)", async (_, options, what) => {
  const faults: Fault[] = [];
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { ...options, ...collecting(faults) });
  for (const version of [...both, ...both])
    expect(await exchange(greenhouse.address, version, water)).toMatchObject({ httpStatus: 200 });
  expect(faults).toMatchObject([{ what, error: { message: "no metrics today" } }]);
});

test("a callback that fails is reported once for each different error", async () => {
  const faults: Fault[] = [];
  let received = 0;
  const onResponse = (): never => {
    throw received++ % 2 === 0 ? new Error("one") : new TypeError("another");
  };
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { onResponse, ...collecting(faults) });
  for (const version of [...both, ...both])
    await exchange(greenhouse.address, version, { ...water, body: Buffer.of() });
  expect(faults).toMatchObject([{ error: { message: "one" } }, { error: { message: "another" } }]);
});

test.each<[name: string, failures: readonly (() => never)[], reports: number]>([
  ["at most 64 times with new messages", Array.from({ length: 100 }, (_, n) => throws(new Error(`order ${n}`))), 64],
  ["once per line that throws the same message", [throws(new Error("a")), throws(new Error("a"))], 2],
  ["once per type of thrown value", [1, 2, "a", "b"].map(throws), 2],
  ["once for unreadable errors", unreadableErrors.slice(1).map(({ create }) => throws(create())), 1],
])("a callback that fails is reported %s when it fails repeatedly", (_name, failures, reports) => {
  const faults: Fault[] = [];
  const guarded = guardCallback(
    "f",
    (fail: () => never) => fail(),
    (error, { what }) => faults.push({ error, what }),
  );
  for (const fail of [...failures, ...failures]) guarded?.(fail);
  expect(faults).toHaveLength(reports);
});

test.each([
  { name: "throws", onFault: throws(failure) },
  { name: "rejects", onFault: rejects(failure) },
])("a callback that fails is printed before onFault's error if onFault $name too", async ({ onFault }) => {
  using printing = vi.spyOn(console, "error").mockReturnValue();
  const onResponse = throws(new Error("the error to print"));
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { onResponse, onFault });
  expect(await exchange(greenhouse.address, "2", { ...water, body: Buffer.of() })).toMatchObject({ httpStatus: 200 });
  await expect.poll(() => printing.mock.calls.length).toBe(2);
  expect(printing.mock.calls).toMatchObject([
    [expect.stringMatching(/^\[ERR_CALLBACK_FAILED\] onResponse failed\n {4}Error: the error to print\n/)],
    [expect.stringMatching(/^\[ERR_CALLBACK_FAILED\] onFault failed\n {4}Error: no metrics today\n/)],
  ]);
});

const addSecondId: GatewayOptions["onError"] = (request) => request.addResponseHeader("X-Request-Id", "r-2");

test.each<{ name: string; header?: readonly Field[]; onError?: GatewayOptions["onError"]; want: string | undefined }>([
  { name: "is undefined if none is sent", want: undefined },
  { name: "is read from the request", header: [["x-request-id", "r-1"]], want: "r-1" },
  { name: "is read from the response first", header: [["x-request-id", "r-1"]], onError: addSecondId, want: "r-2" },
  { name: "may have 128 characters", header: [["x-request-id", "r".repeat(128)]], want: "r".repeat(128) },
  { name: "may not exceed 128 characters", header: [["x-request-id", "r".repeat(129)]], want: undefined },
  { name: "may not contain a space", header: [["x-request-id", "r 1"]], want: undefined },
  { name: "may not contain a non-ASCII character", header: [["x-request-id", "r\u00e4"]], want: undefined },
])("the request id of a reported fault $name", async ({ header = [], onError, want }) => {
  const reported: unknown[] = [];
  const onFault: GatewayOptions["onFault"] = (_, what, request) =>
    reported.push([what, request?.procedure, request?.requestId, request?.contextValues.get(tenantKey)]);
  const request = { ...water, header: [...water.header, ...header] };
  const onRequest: GatewayOptions["onRequest"] = ({ contextValues }) => void contextValues.set(tenantKey, "k");
  for (const options of [{}, { admit: throws(failure) }]) {
    const more = { onRequest, ...options, ...(onError && { onError }) };
    await using greenhouse = await startGreenhouse({ waterBed: throws(failure) }, { ...more, onFault });
    await exchange(greenhouse.address, "1.1", { ...request, body: Buffer.of() });
  }
  const whats = ["a handler or an interceptor failed", "cannot process the request"];
  expect(reported).toEqual(whats.map((what) => [what, waterBedProcedure, want, "k"]));
});

test("an error's grpc-retry-pushback-ms is kept if it also has Retry-After", async () => {
  const full = new ConnectError("full", Code.ResourceExhausted, { "retry-after": "3", "grpc-retry-pushback-ms": "50" });
  await using greenhouse = await startGreenhouse({ waterBed: throws(full) });
  const request = rpcRequest(wireFormats.grpc, Buffer.of(), [], waterBedProcedure);
  const { header } = await exchange(greenhouse.address, "2", request);
  expect([fieldValue(header, "retry-after"), fieldValue(header, "grpc-retry-pushback-ms")]).toEqual(["3", "50"]);
});

test("a ConnectError reported as a fault is not reported again when thrown", async () => {
  const faults: Fault[] = [];
  const shared = new ConnectError("not now", Code.Unavailable);
  const gzip: Compression = { name: "gzip", compress: () => Promise.reject(shared), decompress: throws(failure) };
  await using greenhouse = await startGreenhouse(
    { getReading: () => ({ sensor: "s" }), waterBed: throws(shared) },
    { acceptCompression: [gzip], compressMinBytes: 0, ...collecting(faults) },
  );
  const reading: HttpRequest = { httpMethod: "GET", path: "/sensors/s/reading", header: [["accept-encoding", "gzip"]] };
  for (const request of [reading, { ...water, body: Buffer.of() }]) {
    expect([(await exchange(greenhouse.address, "1.1", request)).httpStatus, faults.length]).toEqual([503, 1]);
  }
});

const toError: GatewayOptions["toError"] = (thrown, { method }) =>
  new ConnectError(`${method.name} without ${String(thrown)}`, Code.Aborted);
const passing: Interceptor = (next) => (request) => next(request);
const failing: Interceptor = () => throws("rain");

describe("toError", () => {
  const unreadable = {
    get note(): never {
      throw "rain";
    },
  };
  test.each<[name: string, waterBed: () => object, interceptors: readonly Interceptor[]]>([
    ["converts an error thrown by a handler", throws("rain"), []],
    ["converts the error of a handler that rejects", () => Promise.reject("rain"), []],
    ["converts a handler's error that passed an interceptor", throws("rain"), [passing]],
    ["converts an error thrown by an interceptor", () => ({}), [failing]],
    ["converts the error of an unreadable response message", () => unreadable, []],
    ["converts the error of an unreadable response message that passed an interceptor", () => unreadable, [passing]],
  ])("%s", async (_name, waterBed, interceptors) => {
    await using greenhouse = await startGreenhouse({ waterBed }, { toError, interceptors: [...interceptors] });
    for (const version of both) {
      const response = await exchange(greenhouse.address, version, { ...water, body: Buffer.of() });
      expect(response.body.toString()).toContain('"message":"WaterBed without rain"');
    }
  });

  const unreadableReading = {
    get sensor(): never {
      throw "rain";
    },
  };
  test.each<[name: string, watchReadings: () => AsyncIterable<object>, interceptors: readonly Interceptor[]]>(
    // oxfmt-ignore
    [
      ["converts an error thrown by a stream", throws("rain"), []],
      ["converts the error of an unreadable stream message", () => yielding(unreadableReading), []],
      ["converts the error of an unreadable stream message that passed an interceptor",
        () => yielding(unreadableReading), [passing]],
    ],
  )("%s", async (_name, watchReadings, interceptors) => {
    await using greenhouse = await startGreenhouse({ watchReadings }, { toError, interceptors: [...interceptors] });
    for (const version of both) {
      const response = await exchange(greenhouse.address, version, watch);
      expect(response.body.toString()).toContain('"message":"WatchReadings without rain"');
    }
  });

  test("is reported as a fault when it throws", async () => {
    const faults: Fault[] = [];
    const options = { toError: throws(failure), ...collecting(faults) };
    await using greenhouse = await startGreenhouse({ waterBed: throws("rain") }, options);
    const response = await exchange(greenhouse.address, "2", { ...water, body: Buffer.of() });
    expect(response.body.toString()).toContain('"message":"internal error"');
    expect(faults).toMatchObject([{ what: "toError failed", error: failure }]);
  });
});

test("a response is reported once even if writing it closes the stream", async () => {
  const slow = Promise.withResolvers<{ note: string }>();
  await using connection = await openGreenhouse(openFrames, { waterBed: () => slow.promise });
  const body = dataFrame(1, encodeEnvelope(0, Buffer.of()), frameFlag.endStream);
  connection.send(settingFrame(4, 10), headersFrame(1, grpcHeader(waterBedProcedure)), body);
  connection.socket.end();
  // The PING shows that the server has read the end of the client's side, so the window stays closed.
  await connection.readUntil(({ type, flags }) => type === frameType.ping && flags === 0);
  slow.resolve({ note: "n".repeat(1000) });
  await once(connection.socket, "close");
  expect(connection.greenhouse.completedRequests).toHaveLength(1);
});

/** A value that the types do not allow, but that an application in JavaScript may return. */
const withoutTypes = (): object => ({ note: 7 });
const unwritable = [{ desc: WaterBedRequestSchema, value: { liters: 1.5 } }];

describe("the fault for an unwritable response", () => {
  const what = "cannot write the response";

  test("is reported for a message, and an error is sent instead", async () => {
    const faults: Fault[] = [];
    await using greenhouse = await startGreenhouse({ waterBed: withoutTypes }, collecting(faults));
    for (const version of both)
      expect((await exchange(greenhouse.address, version, { ...water, body: Buffer.of() })).httpStatus).toBe(500);
    expect(faults).toMatchObject([{ what }, { what }]);
  });
  const unary = rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), [], waterBedProcedure);
  const compressed: HttpRequest = { ...unary, header: [...unary.header, ["accept-encoding", "gzip"]] };
  const refuse = throws(new ConnectError("not you", Code.PermissionDenied, undefined, unwritable));
  const refuseAtLength = throws(new ConnectError("not you ".repeat(200), Code.PermissionDenied));
  const compress = () => Promise.reject(failure);
  const brokenGzip: Compression = { name: "gzip", compress, decompress: throws(failure) };
  const ofBroken = { acceptCompression: [brokenGzip] };
  const rows: [name: string, handlers: object, options: Partial<GatewayOptions>, request: HttpRequest][] = [
    ["an error", { waterBed: refuse }, {}, unary],
    ["an error that cannot be compressed", { waterBed: refuseAtLength }, ofBroken, compressed],
    ["a stream's error", { watchReadings: refuse }, {}, watch],
    ["a refusal by admit", {}, { admit: refuse }, unary],
    ["an asynchronous refusal by admit", {}, { admit: async () => refuse() }, unary],
    ["a refusal of an unknown path", {}, { admit: refuse }, { ...unary, path: "/nowhere" }],
  ];
  test.each(rows.flatMap((row) => http2Servers.map((http2) => [...row, http2] as const)))(
    "is reported for %s, and the exchange is reset",
    async (_name, handlers, options, request, http2) => {
      const faults: Fault[] = [];
      await using greenhouse = await startGreenhouse(handlers, { ...options, ...collecting(faults) }, { http2 });
      const versions = http2 === "mounted" ? (["2"] as const) : both;
      for (const version of versions) {
        const end = version === "1.1" ? "the peer closed" : "with error code 2";
        await expect(exchange(greenhouse.address, version, request)).rejects.toThrow(end);
      }
      expect(faults).toMatchObject(versions.map(() => ({ what })));
      expect(greenhouse.completedRequests).toMatchObject(versions.map(() => ({ httpStatus: 0 })));
    },
  );
});

describe.each([0, 99, "NotFound", "5"])("an error with the invalid code %j", (code) => {
  const fail = (): never => {
    throw Reflect.construct(ConnectError, ["from elsewhere", code]);
  };
  const unknown = { code: Code.Unknown, message: "from elsewhere" };

  test.each([wireFormats.grpc, wireFormats["grpc-web"]])("is sent as UNKNOWN in a $name stream", async (format) => {
    const fails = [
      fail,
      async function* () {
        yield {};
        fail();
      },
    ];
    for (const watchReadings of fails) {
      await using greenhouse = await startGreenhouse({ watchReadings });
      const procedure = "/greenhouse.v1.GreenhouseService/WatchReadings";
      const response = await exchange(greenhouse.address, "2", rpcRequest(format, Buffer.of(), [], procedure));
      expect(readOutcome(format, response)).toMatchObject(unknown);
    }
  });
});

test("at most 20 faults are printed in 10 seconds", () => {
  let nowMs = 1000;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  using printing = vi.spyOn(console, "error").mockReturnValue();
  const report = createFaultReporter();
  const printed = [0, 9_999, 1].map((afterMs) => {
    nowMs += afterMs;
    printing.mockClear();
    for (let count = 0; count < 30; count += 1) report("again", { errorCode: "ERR_HANDLER_FAILED", what: "it failed" });
    return printing.mock.calls.map(([text]) => String(text).includes("\nfurther errors are not printed for 10 s"));
  });
  const twentyLines = [...Array<boolean>(19).fill(false), true];
  expect(printed).toEqual([twentyLines, [], twentyLines]);
});
