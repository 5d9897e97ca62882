import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ReadingSchema, WaterBedRequestSchema } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type CompletedRequest, errorCodeOf } from "../../../../../gateway/src/index.ts";
import { dataFrame, exchangeHttp1, exchangeHttp2, frameType, headersFrame, openHttp2 } from "@protoport/testing/http";
import { collect, within } from "@protoport/testing/process";
// oxfmt-ignore
import { type Calling, envelope, GreenhouseService, grpcHead, grpcResponse, type Reading, type ScriptedConnection,
  startProxy, startScriptedServer, type TestProxy } from "@protoport/testing/proxy";
import { fieldValue, type HttpRequest, callings, errorOf } from "@protoport/testing";
import { startProxied } from "../../../support/greenhouses.ts";

const files = [GreenhouseService.file];
const waterBed = "/greenhouse.v1.GreenhouseService/WaterBed";
const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";

function grpcRequest(path: string, message: Uint8Array, header: HttpRequest["header"] = []): HttpRequest {
  const grpc = Object.entries({ "content-type": "application/grpc+proto", te: "trailers" });
  return { httpMethod: "POST", path, header: [...grpc, ...header], body: envelope(message) };
}

function fail(_: unknown, { responseTrailer }: HandlerContext): never {
  responseTrailer.set("x-left", "0");
  const details = [{ desc: ReadingSchema, value: { sensor: "tank" } }];
  throw new ConnectError("no water", Code.FailedPrecondition, { "x-why": "drought" }, details);
}

const connectJson: Calling = {
  name: "Connect with JSON",
  listen: {},
  transport: ({ address, port }) =>
    createConnectTransport({ baseUrl: `http://${address}:${port}`, httpVersion: "2", useBinaryFormat: false }),
};

const protocols = [...callings.filter(({ listen }) => listen.http2 === undefined), connectJson];

describe.each(protocols)("a call with $name through a proxy", ({ transport }) => {
  test("forwards message, header and trailer in both directions", async () => {
    const sent: (string | null)[] = [];
    await using proxy = await startProxied({
      waterBed: ({ bed, liters, note }, { requestHeader, responseHeader, responseTrailer }) => {
        sent.push(requestHeader.get("x-zone"), requestHeader.get("x-key-bin"), requestHeader.get("authorization"));
        responseHeader.set("x-tank", "half full");
        responseTrailer.set("x-drops-bin", "AAEC");
        return { bed, liters, note };
      },
    });
    const received: (string | null)[] = [];
    const header = { "x-zone": "south", "x-key-bin": "/w", authorization: "Bearer a" };
    const onHeader = (fields: Headers) => void received.push(fields.get("x-tank"));
    const onTrailer = (fields: Headers) => void received.push(fields.get("x-drops-bin"));
    const request = { bed: 2n ** 60n, liters: 3, note: "\u{1f331}" };
    const client = createClient(GreenhouseService, transport(proxy.address));
    expect(await client.waterBed(request, { headers: header, onHeader, onTrailer })).toMatchObject(request);
    expect(sent).toEqual(["south", "/w", "Bearer a"]);
    expect(received).toEqual(["half full", "AAEC"]);
  });

  test("streams messages in both directions", async () => {
    await using proxy = await startProxied({
      async *watchReadings({ sensor, count }, { responseHeader, responseTrailer }) {
        responseHeader.set("x-kind", "readings");
        responseHeader.set("alt-svc", "clear");
        for (let at = 0; at < count; at += 1) yield { sensor, degreesCelsius: at };
        responseTrailer.set("x-count", String(count));
      },
      recordReadings: async (readings) => {
        const all = await collect(readings);
        return { count: all.length, meanDegreesCelsius: all[0]?.degreesCelsius ?? 0 };
      },
      async *controlClimate(readings) {
        for await (const { sensor, degreesCelsius } of readings) yield { sensor, heatWatts: degreesCelsius + 1 };
      },
    });
    const client = createClient(GreenhouseService, transport(proxy.address));
    const metadata: (string | null)[] = [];
    const onHeader = (fields: Headers) => void metadata.push(fields.get("x-kind"), fields.get("alt-svc"));
    const onTrailer = (fields: Headers) => void metadata.push(fields.get("x-count"));
    const watched = client.watchReadings({ sensor: "a", count: 300 }, { onHeader, onTrailer });
    expect((await collect(watched)).map(({ degreesCelsius }) => degreesCelsius)).toEqual([...Array(300).keys()]);
    expect(metadata).toEqual(["readings", null, "300"]);
    const readings = [{ degreesCelsius: 4 }, { degreesCelsius: 5 }].map((init) => create(ReadingSchema, init));
    const each = async function* (): AsyncGenerator<Reading> {
      yield* readings;
    };
    expect(await client.recordReadings(each())).toMatchObject({ count: 2, meanDegreesCelsius: 4 });
    if (transport === callings[0]?.transport) return;
    expect((await collect(client.controlClimate(each()))).map(({ heatWatts }) => heatWatts)).toEqual([5, 6]);
  });

  test("fails with the upstream's error, including details and trailer", async () => {
    await using proxy = await startProxied({
      waterBed: fail,
      // oxlint-disable-next-line require-yield
      async *watchReadings(request, context) {
        fail(request, context);
      },
    });
    const client = createClient(GreenhouseService, transport(proxy.address));
    for (const call of [client.waterBed({}), collect(client.watchReadings({}))]) {
      const error = await errorOf(call);
      const fields = ["x-left", "x-why"].map((name) => error.metadata.get(name));
      expect([error.rawMessage, error.code, fields]).toEqual(["no water", Code.FailedPrecondition, ["0", "drought"]]);
      expect(error.findDetails(ReadingSchema)).toMatchObject([{ sensor: "tank" }]);
    }
  });
});

test("on REST, upstream errors have JSON details and header fields", async () => {
  await using proxy = await startProxied({
    waterBed: () => {
      const details = [{ desc: ReadingSchema, value: { sensor: "tank" } }];
      throw new ConnectError("no water", Code.NotFound, { "x-why": "drought" }, details);
    },
  });
  const response = await postWater(proxy);
  expect([response.httpStatus, fieldValue(response.header, "x-why")]).toEqual([404, "drought"]);
  const details = [{ "@type": "type.googleapis.com/greenhouse.v1.Reading", sensor: "tank" }];
  expect(JSON.parse(response.body.toString())).toEqual({ code: 5, status: "NOT_FOUND", message: "no water", details });
});

// gRPC over HTTP/2, "Status-Message". grpc-js does not decode characters that were escaped unnecessarily.
test.each([
  { name: "no details", details: [] },
  { name: "details", details: [{ desc: ReadingSchema, value: { sensor: "tank" } }] },
])("grpc-message with $name escapes only the required characters", async ({ details }) => {
  await using proxy = await startProxied({
    waterBed: () => {
      throw new ConnectError("tank 1: 50% left, é @ /a?b=c#d&e", Code.NotFound, undefined, details);
    },
  });
  const response = await exchangeHttp2(proxy.address, grpcRequest(waterBed, Buffer.alloc(0)));
  const message = fieldValue([...response.header, ...response.trailer], "grpc-message");
  expect(message).toBe("tank%201:%2050%25%20left,%20%C3%A9%20@%20/a?b=c#d&e");
});

function postWater(proxy: TestProxy, ...header: HttpRequest["header"]): ReturnType<typeof exchangeHttp1> {
  const fields = [["content-type", "application/json"] as const, ...header];
  const body = Buffer.from('{"liters":3}');
  return exchangeHttp1(proxy.address, { httpMethod: "POST", path: "/beds/7:water", header: fields, body });
}

describe("a message that cannot be decoded", () => {
  // The bytes are not a valid message in any type, so they can only be forwarded unchanged.
  const odd = Buffer.from("ffffffff00", "hex");

  test("is forwarded unchanged in both directions", async () => {
    const received: Buffer[] = [];
    await using upstream = await startScriptedServer({
      frame: (_, { type, payload }) => void (type === frameType.data && received.push(payload)),
      request: (connection, id) => connection.send(...grpcResponse(id, envelope(odd))),
    });
    await using proxy = await startProxy(upstream.baseUrl, files);
    const response = await exchangeHttp2(proxy.address, grpcRequest(waterBed, odd));
    expect([Buffer.concat(received), response.body]).toEqual([envelope(odd), envelope(odd)]);
    expect(fieldValue(response.trailer, "grpc-status")).toBe("0");
  });

  test("is decompressed only below the size limit", async () => {
    const received: Buffer[] = [];
    const gzipHead = [...grpcHead, ["grpc-encoding", "gzip"] as const];
    await using upstream = await startScriptedServer({
      frame: (_, { type, payload }) => void (type === frameType.data && received.push(payload)),
      request: (connection, id) =>
        connection.send(...grpcResponse(id, envelope(gzipSync(odd), 1), undefined, gzipHead)),
    });
    await using proxy = await startProxy(upstream.baseUrl, files, { readMaxBytes: 1_000 });
    const send = (message: Uint8Array): ReturnType<typeof exchangeHttp2> =>
      exchangeHttp2(proxy.address, {
        ...grpcRequest(waterBed, odd, [["grpc-encoding", "gzip"]]),
        body: envelope(gzipSync(message), 1),
      });
    expect([(await send(odd)).body, Buffer.concat(received)]).toEqual([envelope(odd), envelope(odd)]);
    expect(fieldValue((await send(Buffer.alloc(2_000))).header, "grpc-status")).toBe(String(Code.ResourceExhausted));
    expect(upstream.requests).toBe(1);
  });
});

test.each([
  { name: "the caller's deadline", header: [["connect-timeout-ms", "60"]], upstreamOptions: {} },
  { name: "the proxy's deadline", header: [], upstreamOptions: { maxTimeoutMs: 60 } },
] as const)(
  "fails a call without a response after $name, and resets its stream",
  async ({ header, upstreamOptions }) => {
    const resets: Buffer[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    await using upstream = await startScriptedServer({
      frame: (_, { type, payload }) => {
        if (type !== frameType.resetStream) return;
        resets.push(payload);
        resolve();
      },
    });
    const codes: unknown[] = [];
    await using proxy = await startProxy(upstream.baseUrl, files, {
      upstreamOptions,
      onError: (_, error) => void codes.push(errorCodeOf(error)),
    });
    // On a busy machine, the deadline may pass before the upstream gets the call.
    while (upstream.requests === 0) {
      const response = await postWater(proxy, ...header);
      expect([response.httpStatus, JSON.parse(response.body.toString())]).toMatchObject([
        504,
        { code: Code.DeadlineExceeded },
      ]);
    }
    await within(promise, "a reset");
    expect(codes.at(-1)).toBe("ERR_DEADLINE_EXCEEDED");
    // CANCEL (RFC 9113 §7).
    expect(resets).toEqual([Buffer.of(0, 0, 0, 8)]);
  },
);

test.each([waterBed, watchReadings])("a caller that cancels %s resets the upstream's stream", async (path) => {
  const requested = Promise.withResolvers<void>();
  const reset = Promise.withResolvers<Buffer>();
  await using upstream = await startScriptedServer({
    request: () => requested.resolve(),
    frame: (_, { type, payload }) => void (type === frameType.resetStream && reset.resolve(payload)),
  });
  const calls: CompletedRequest[] = [];
  await using proxy = await startProxy(upstream.baseUrl, files, { onResponse: (call) => void calls.push(call) });
  using connection = await openHttp2(proxy.address);
  const request = grpcRequest(path, Buffer.alloc(0));
  const stream = connection.open(request).on("error", () => undefined);
  stream.end(request.body);
  await within(requested.promise, "the request");
  stream.close(8);
  expect(await within(reset.promise, "a reset")).toEqual(Buffer.of(0, 0, 0, 8));
  expect(calls).toMatchObject([{ httpStatus: 0 }]);
});

test("cancelling a call that an interceptor forwarded twice resets both streams", async () => {
  const requested = Promise.withResolvers<void>();
  const reset = Promise.withResolvers<void>();
  let resets = 0;
  await using upstream = await startScriptedServer({
    request: ({ requests }) => void (requests === 2 && requested.resolve()),
    frame: (_, { type }) => void (type === frameType.resetStream && ++resets === 2 && reset.resolve()),
  });
  await using proxy = await startProxy(upstream.baseUrl, files, {
    interceptors: [(next) => (request) => Promise.any([next(request), next(request)])],
  });
  using connection = await openHttp2(proxy.address);
  const request = grpcRequest(waterBed, Buffer.alloc(0));
  const stream = connection.open(request).on("error", () => undefined);
  stream.end(request.body);
  await within(requested.promise, "both requests");
  stream.close(8);
  await within(reset.promise, "both resets");
});

test("a stream is reset when its interceptor stops reading it", async () => {
  const [reset, reading] = [Promise.withResolvers<void>(), envelope(Buffer.from("\n\u0001a"))];
  await using upstream = await startScriptedServer({
    request: (connection, id) => connection.send(headersFrame(id, grpcHead), dataFrame(id, reading)),
    frame: (_, { type }) => void (type === frameType.resetStream && reset.resolve()),
  });
  const one: Interceptor = (next) => async (request) => {
    const response = await next(request);
    if (!response.stream) return response;
    const message = async function* (): AsyncGenerator<Message> {
      for await (const first of response.message) {
        yield first;
        break;
      }
      await within(reset.promise, "a reset");
    };
    return { ...response, message: message() };
  };
  await using proxy = await startProxy(upstream.baseUrl, files, { interceptors: [one] });
  const response = await exchangeHttp2(proxy.address, grpcRequest(watchReadings, Buffer.alloc(0)));
  expect([response.body, fieldValue(response.trailer, "grpc-status")]).toEqual([reading, "0"]);
});

test("a failed response stream that nobody reads causes no unhandled rejection", async () => {
  const none: Interceptor = (next) => async (request) => {
    const response = await next(request);
    return response.stream ? { ...response, message: messagesOf() } : response;
  };
  await using proxy = await startProxy("http://127.0.0.1:1", files, { interceptors: [none] });
  const response = await exchangeHttp2(proxy.address, grpcRequest(watchReadings, Buffer.alloc(0)));
  expect(fieldValue([...response.header, ...response.trailer], "grpc-status")).toBe("0");
  // An unhandled rejection would be reported one turn later and would fail the test run.
  await new Promise(setImmediate);
});

async function* messagesOf(...messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages;
}

test("a response header is forwarded before its first message", async () => {
  let upstreamConnection: readonly [ScriptedConnection, number] | undefined;
  await using upstream = await startScriptedServer({
    request: (connection, id) => {
      upstreamConnection = [connection, id];
      connection.send(headersFrame(id, [...grpcHead, ["x-early", "yes"]]));
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, files);
  using connection = await openHttp2(proxy.address);
  const request = grpcRequest(watchReadings, Buffer.alloc(0));
  const stream = connection.open(request);
  stream.end(request.body);
  const [header] = await within(once(stream, "response"), "the header");
  expect(header).toMatchObject({ ":status": 200, "x-early": "yes" });
  const [scripted, id] = upstreamConnection ?? [];
  if (scripted === undefined || id === undefined) throw new Error("the upstream got no request");
  scripted.send(dataFrame(id, envelope(Buffer.of(1))), headersFrame(id, [["grpc-status", "0"]], 1));
  const [piece] = await within(once(stream, "data"), "a message");
  expect(piece).toEqual(envelope(Buffer.of(1)));
});

test("640 concurrent calls each get their own response", async () => {
  await using proxy = await startProxied({
    waterBed: async ({ bed, liters, note }) => {
      await new Promise((resolve) => setTimeout(resolve, Number(bed % 7n)));
      return { bed, liters, note };
    },
  });
  using http2 = await openHttp2(proxy.address);
  const calls = Array.from({ length: 640 }, async (_, at) => {
    const note = `caller ${at} `.repeat(1 + (at % 50));
    const init = { $typeName: "greenhouse.v1.WaterBedRequest", bed: BigInt(at), liters: at, note } as const;
    if (at % 2 === 0) {
      const response = await http2.exchange(grpcRequest(waterBed, toBinary(WaterBedRequestSchema, init)));
      return response.body.equals(envelope(toBinary(WaterBedRequestSchema, init)));
    }
    const body = Buffer.from(JSON.stringify({ liters: at, note }));
    const header = [["content-type", "application/json"]] as const;
    const response = await http2.exchange({ httpMethod: "POST", path: `/beds/${at}:water`, header, body });
    return response.body.toString() === JSON.stringify({ bed: String(at), liters: at, note });
  });
  expect((await Promise.all(calls)).filter((isCorrect) => !isCorrect)).toEqual([]);
});

test("backpressure from an idle caller stops the upstream", async () => {
  let sent = 0;
  await using proxy = await startProxied({
    async *watchReadings() {
      const sensor = "s".repeat(16_000);
      for (;;) {
        sent += sensor.length;
        yield { sensor };
      }
    },
  });
  using connection = await openHttp2(proxy.address);
  const request = grpcRequest(watchReadings, Buffer.alloc(0));
  const stream = connection.open(request).on("error", () => undefined);
  stream.end(request.body);
  await within(once(stream, "response"), "the header");
  let before = -1;
  // Waits until nothing more is sent for a while.
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // The limit includes the windows of caller and proxy, socket buffers, and messages in between.
  expect(sent).toBeGreaterThan(262_144);
  expect(sent).toBeLessThan(700_000);
  stream.close();
});
