import { getEventListeners } from "node:events";
import { constants, gzipSync } from "node:zlib";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
import { type CompletedRequest, type Endpoint, type FetchHandler } from "../../src/fetch/entry.ts";
// oxfmt-ignore
import { GreenhouseService, ReadingSchema, WaterBedRequestSchema
} from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { decodeEnvelopes, encodeEnvelope, exchangeFetch, type Field, fieldValue, getReadingProcedure, type HttpRequest,
  openFetch, openFetchUpload, readOutcome, reasonOf, rpcRequest, wireFormats, within } from "@protoport/testing";
import { pulledRequest, serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";

// Tests only what is specific to Fetch. The tables in protoport/gateway/test cover what all transports share, and also
// run over Fetch.

type Greenhouse = Partial<ServiceImpl<typeof GreenhouseService>>;
const service = "/greenhouse.v1.GreenhouseService";
const reading: HttpRequest = { httpMethod: "GET", path: "/sensors/palm/reading", header: [] };
const readings: HttpRequest = { httpMethod: "GET", path: "/sensors/palm/readings", header: [] };

async function* endless(): AsyncGenerator<{ sensor: string }> {
  for (let count = 0; ; count += 1) yield { sensor: "x".repeat(10_000) + String(count) };
}

test.each(["connect-json", "connect-proto", "grpc-web", "grpc-web-json", "grpc-web-text"] as const)(
  "an RPC over Fetch in %s gets a response",
  async (name) => {
    const format = wireFormats[name];
    const ok = rpcRequest(format, name.endsWith("json") ? Buffer.from("{}") : Buffer.of(), [], getReadingProcedure);
    const fetch = serveByFetch({ getReading: () => ({ degreesCelsius: 21 }) });
    expect(readOutcome(format, await exchangeFetch(fetch, ok))).toEqual({ code: 0, message: "" });
    const failing = serveByFetch({ getReading: () => Promise.reject(new ConnectError("no", Code.NotFound)) });
    expect(readOutcome(format, await exchangeFetch(failing, ok))).toEqual({ code: Code.NotFound, message: "no" });
  },
);

test("an RPC over Fetch does not require a body if the request message is empty", async () => {
  const fetch = serveByFetch({ getReading: () => ({ degreesCelsius: 21 }) });
  const headers = { "content-type": "application/proto" };
  const answer = await fetch(new Request(`http://fetch.example${getReadingProcedure}`, { method: "POST", headers }));
  expect(fromBinary(ReadingSchema, await answer.bytes()).degreesCelsius).toBe(21);
});

test("an RPC over Fetch streams responses in the Connect protocol", async () => {
  const fetch = serveByFetch({
    async *controlClimate(sent) {
      for await (const { sensor } of sent) yield { sensor };
    },
  });
  const body = Buffer.concat(["a", "b"].map((sensor) => encodeEnvelope(0, Buffer.from(JSON.stringify({ sensor })))));
  const header: Field[] = [["content-type", "application/connect+json"]];
  const answer = await exchangeFetch(fetch, { httpMethod: "POST", path: `${service}/ControlClimate`, header, body });
  const messages = decodeEnvelopes(answer.body).map(({ bytes }): unknown => JSON.parse(bytes.toString()));
  expect(messages).toEqual([{ sensor: "a" }, { sensor: "b" }, {}]);
});

test("an RPC over Fetch is not affected when a client transfers the buffers of another response", async () => {
  const fetch = serveByFetch({
    async *watchReadings() {
      yield { sensor: "a" };
      await new Promise((resolve) => setTimeout(resolve));
      yield { sensor: "b" };
    },
  });
  const request = rpcRequest(wireFormats["grpc-web"], Buffer.of(), [], `${service}/WatchReadings`);
  const stolen = (await openFetch(fetch, request)).body;
  for await (const { buffer } of stolen ?? []) structuredClone(buffer, { transfer: [buffer] });
  const [first, second, end] = decodeEnvelopes((await exchangeFetch(fetch, request)).body);
  const sensors = [first, second].map((envelope) => fromBinary(ReadingSchema, envelope?.bytes ?? Buffer.of()).sensor);
  expect([sensors, end?.bytes.toString()]).toEqual([["a", "b"], "grpc-status: 0\r\n"]);
});

const defaultRecord =
  '{"code":3,"status":"INVALID_ARGUMENT","message":"gRPC is not supported here; use gRPC-Web","details":[]}';
const errorRecord = (_: unknown, { httpStatus }: { httpStatus: number }) => ({ httpStatus, body: "no" });

test.each([
  ["the default error record", {}, defaultRecord],
  ["a custom error record", { rest: { errorRecord } }, '"no"'],
])("an RPC over Fetch in gRPC is refused with %s, because Fetch has no trailers", async (_why, options, body) => {
  const fetch = serveByFetch({ getReading: () => ({}) }, options);
  const message = toBinary(ReadingSchema, { $typeName: "greenhouse.v1.Reading", sensor: "", degreesCelsius: 0 });
  const other = rpcRequest(wireFormats.grpc, message, [], `${service}/Nothing`);
  expect(readOutcome(wireFormats.grpc, await exchangeFetch(serveByFetch({}), other)).code).toBe(Code.Unimplemented);
  const answer = await exchangeFetch(fetch, rpcRequest(wireFormats.grpc, message, [], getReadingProcedure));
  expect([answer.httpStatus, answer.body.toString()]).toEqual([415, body]);
  expect(fieldValue(answer.header, "grpc-status")).toBeUndefined();
});

const upload = (coding: string, body: Buffer): HttpRequest => {
  const header: Field[] = Object.entries({ "content-type": "application/x-ndjson", "content-encoding": coding });
  return { httpMethod: "POST", path: "/readings", header, body };
};

const copy = async (bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(bytes);

describe("a client stream over Fetch", () => {
  const post = { case: "post", value: "/readings" } as const;
  const rules = [{ selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern: post, body: "*" }];
  const record = (acceptCompression?: Compression[]): FetchHandler =>
    serveByFetch(
      {
        async recordReadings(sent) {
          let count = 0;
          for await (const _ of sent) count += 1;
          return { count };
        },
      },
      { rest: { rules }, ...(acceptCompression && { acceptCompression }) },
    );
  const lines = Buffer.from('{"sensor":"a"}\n{"sensor":"b"}\n');

  test("with gzip is decompressed", async () => {
    const answer = await exchangeFetch(record(), upload("gzip", gzipSync(lines)));
    expect([answer.httpStatus, answer.body.toString()]).toEqual([200, '{"count":2}']);
    expect((await exchangeFetch(record(), upload("gzip", lines))).httpStatus).toBe(400);
  });

  test("gets its response when the handler stops reading a gzip body", async () => {
    const handlers: Greenhouse = {
      async recordReadings(sent) {
        for await (const _ of sent) break;
        return { count: 1 };
      },
    };
    const fetch = serveByFetch(handlers, { rest: { rules } });
    const { header } = upload("gzip", lines);
    using sending = openFetchUpload(fetch, ["POST", "/readings"], header);
    sending.write(gzipSync(lines, { finishFlush: constants.Z_SYNC_FLUSH }));
    expect((await within(sending.readResponse(), "the response")).body.toString()).toBe('{"count":1}');
  });

  const whole: Compression = { name: "whole", compress: copy, decompress: copy };
  test.each([
    { why: "an unsupported coding", coding: "br", available: undefined, readable: "gzip" },
    { why: "a coding that cannot decode a stream", coding: "whole", available: [whole], readable: "identity" },
  ])("with $why gets status 415 and the supported codings", async ({ coding, available, readable }) => {
    const { httpStatus, header } = await exchangeFetch(record(available), upload(coding, lines));
    expect([httpStatus, fieldValue(header, "accept-encoding")]).toEqual([415, readable]);
  });
});

describe("a response over Fetch", () => {
  test.each([
    { httpStatus: 200, body: "text", length: "4" },
    { httpStatus: 205, body: "", length: undefined },
    { httpStatus: 304, body: "", length: undefined },
  ])('with status $httpStatus has body "$body" for GET, and none for HEAD', async ({ httpStatus, body, length }) => {
    const endpoint = { path: "/page", open: true, handle: () => ({ httpStatus, body: "text" }) };
    const fetch = serveByFetch({}, { endpoints: [endpoint] });
    const page = { httpMethod: "GET", path: "/page", header: [] };
    const answer = await exchangeFetch(fetch, page);
    expect([answer.httpStatus, answer.body.toString()]).toEqual([httpStatus, body]);
    const head = await exchangeFetch(fetch, { ...page, httpMethod: "HEAD" });
    const { httpStatus: headStatus, header } = head;
    expect([headStatus, String(head.body), fieldValue(header, "content-length")]).toEqual([httpStatus, "", length]);
  });

  test("keeps Set-Cookie fields separate", async () => {
    const fetch = serveByFetch({
      getReading: (_, { responseHeader }) => {
        responseHeader.append("set-cookie", "a=1");
        responseHeader.append("set-cookie", "b=2");
        return {};
      },
    });
    const response = await fetch(new Request("http://fetch.example/sensors/palm/reading"));
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  test("is an empty 500 response if an error detail cannot be encoded", async () => {
    const unwritable = [{ desc: WaterBedRequestSchema, value: { liters: 1.5 } }];
    const faults: unknown[] = [];
    const fetch = serveByFetch(
      { getReading: () => Promise.reject(new ConnectError("secret", Code.NotFound, undefined, unwritable)) },
      { onFault: (error) => void faults.push(error) },
    );
    const path = `/${GreenhouseService.typeName}/GetReading`;
    const header: Field[] = [["content-type", "application/json"]];
    const answer = await exchangeFetch(fetch, { httpMethod: "POST", path, header, body: Buffer.from("{}") });
    expect([answer.httpStatus, answer.header, answer.body.toString(), faults.length]).toEqual([500, [], "", 1]);
  });

  test.each([
    { how: "sent completely", request: reading, read: (response: Response) => response.text() },
    { how: "streamed", request: readings, read: (response: Response) => response.text() },
    { how: "cancelled", request: readings, read: (response: Response) => response.body?.cancel() },
  ])("once $how, leaves no listener on the request's signal", async ({ request, read }) => {
    const implementation: Greenhouse = {
      getReading: () => ({}),
      async *watchReadings() {
        yield {};
        await new Promise(setImmediate);
        yield {};
      },
    };
    const sent = new Request(`http://fetch.example${request.path}`);
    await read(await serveByFetch(implementation)(sent));
    expect(getEventListeners(sent.signal, "abort")).toEqual([]);
  });

  test("applies backpressure to its handler", async () => {
    let yielded = 0;
    const fetch = serveByFetch({
      async *watchReadings() {
        for await (const message of endless()) {
          yielded += 1;
          yield message;
        }
      },
    });
    const { body } = await openFetch(fetch, readings);
    const reader = body?.getReader();
    await reader?.read();
    // The test stops once two turns with 64 KiB each are collected.
    let before = -1;
    await expect
      .poll(() => {
        const hasStopped = yielded === before;
        before = yielded;
        return hasStopped;
      })
      .toBe(true);
    expect(yielded).toBeLessThan(50);
    let bytes = 0;
    while (bytes < 1024 * 1024) bytes += (await reader?.read())?.value?.byteLength ?? 0;
    expect(yielded).toBeGreaterThan(100);
    await reader?.cancel();
  });
});

describe("a client disconnect over Fetch", () => {
  test("that precedes the call returns 499 without calling the handler", async () => {
    let called = false;
    const fetch = serveByFetch({ getReading: () => ((called = true), {}) });
    expect([(await openFetch(fetch, reading, AbortSignal.abort())).status, called]).toEqual([499, false]);
  });

  test("during the upload returns 499", async () => {
    const controller = new AbortController();
    const body = pulledRequest(() => controller.abort());
    const request = new Request(body, { signal: controller.signal });
    expect((await within(serveByFetch({ waterBed: () => ({}) })(request), "an answer")).status).toBe(499);
  });

  test("cancels a running call", async () => {
    const controller = new AbortController();
    const reason = Promise.withResolvers<unknown>();
    const fetch = serveByFetch({
      getReading: async (_, { signal }) => {
        controller.abort();
        reason.resolve(await reasonOf(signal));
        return {};
      },
    });
    expect((await openFetch(fetch, reading, controller.signal)).status).toBe(499);
    expect(await reason.promise).toMatchObject({ code: Code.Canceled });
  });

  test("during an endpoint's response is reported to onResponse as cancelled", async () => {
    const controller = new AbortController();
    const reported = Promise.withResolvers<object>();
    const handle: Endpoint["handle"] = async () => (controller.abort(), { httpStatus: 200, body: "late" });
    const onResponse = ({ httpStatus, error }: CompletedRequest) => reported.resolve({ httpStatus, code: error?.code });
    const fetch = serveByFetch({}, { endpoints: [{ path: "/page", open: true, handle }], onResponse });
    const page: HttpRequest = { httpMethod: "GET", path: "/page", header: [] };
    expect((await openFetch(fetch, page, controller.signal)).status).toBe(499);
    expect(await within(reported.promise, "onResponse")).toEqual({ httpStatus: 0, code: Code.Canceled });
  });

  test.each([
    { how: "by cancelling the response body", leave: (body: ReadableStream<Uint8Array>) => body.cancel() },
    { how: "by aborting the request's signal", leave: (_: unknown, controller: AbortController) => controller.abort() },
  ])("$how cancels a streaming call", async ({ leave }) => {
    const controller = new AbortController();
    const reason = Promise.withResolvers<unknown>();
    const fetch = serveByFetch({
      async *watchReadings(_, { signal }) {
        yield { sensor: "first" };
        reason.resolve(await reasonOf(signal));
      },
    });
    const { body } = await openFetch(fetch, readings, controller.signal);
    if (body === null) throw new Error("the answer has no body");
    await leave(body, controller);
    expect(await within(reason.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    if (controller.signal.aborted) await expect(new Response(body).text()).rejects.toThrow();
  });

  test("stops a streaming handler even if the client has read no message", async () => {
    const finished = Promise.withResolvers<void>();
    const fetch = serveByFetch({
      async *watchReadings() {
        try {
          yield* endless();
        } finally {
          finished.resolve();
        }
      },
    });
    const { body } = await openFetch(fetch, readings);
    await body?.cancel();
    await within(finished.promise, "the end of the handler");
  });
});
