import { getEventListeners } from "node:events";
import { constants, gzipSync } from "node:zlib";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextKey, createContextValues, type ServiceImpl } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
import {
  type AnsweredRequest,
  createFetchGateway,
  type Endpoint,
  type FetchHandler,
  type ServingOptions,
} from "../../../src/gateway/fetch/entry.ts";
import { GreenhouseService, ReadingSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Field, fieldValue, type HttpRequest } from "../../support/carriers/exchange.ts";
import { exchangeFetch, openFetch, openFetchUpload } from "../../support/carriers/fetch.ts";
import { collectGarbage, heldBytes } from "../../support/carriers/held-bytes.ts";
import { within } from "../../support/deadline.ts";
import { reasonOf } from "../../support/gateway/call-end.ts";
import { decodeEnvelopes, encodeEnvelope } from "../../support/gateway/envelope.ts";
import { getReadingProcedure } from "../../support/gateway/greenhouse.ts";
import { readOutcome } from "../../support/gateway/outcome.ts";
import { rpcRequest, wireFormats } from "../../support/gateway/wire-format.ts";

// What is particular to Fetch. What every carrier has in common is in the tables of test/gateway, which run through it.

type Greenhouse = Partial<ServiceImpl<typeof GreenhouseService>>;
type Pull = (controller: {
  enqueue(piece: unknown): void;
  error(reason: unknown): void;
  close(): void;
}) => void | Promise<void>;

const service = "/greenhouse.v1.GreenhouseService";
const json: Field = ["content-type", "application/json"];
const reading: HttpRequest = { httpMethod: "GET", path: "/sensors/palm/reading", header: [] };
const readings: HttpRequest = { httpMethod: "GET", path: "/sensors/palm/readings", header: [] };
const water: HttpRequest = { httpMethod: "POST", path: "/beds/7:water", header: [json], body: Buffer.from("{}") };
const pattern = { case: "get", value: "/sensors/{sensor}/readings" } as const;

function serve(implementation: Greenhouse, options: Partial<ServingOptions> = {}): FetchHandler {
  return createFetchGateway({
    routes: (router) => router.service(GreenhouseService, implementation),
    rest: { rules: [{ selector: "greenhouse.v1.GreenhouseService.WatchReadings", pattern }] },
    ...options,
  }).fetch;
}

function acceptElsewhere(): Response {
  return new Response(null, { status: 202 });
}

/** A body whose pieces are made when they are asked for. */
function pulled(pull: Pull): Request {
  const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  const headers = { "content-type": "application/json" };
  return new Request("http://fetch.example/beds/7:water", { method: "POST", headers, body, duplex: "half" });
}

async function* endless(): AsyncGenerator<{ sensor: string }> {
  for (let count = 0; ; count += 1) yield { sensor: "x".repeat(10_000) + String(count) };
}

describe("an RPC over Fetch", () => {
  test.each(["connect-json", "connect-proto", "grpc-web", "grpc-web-json", "grpc-web-text"] as const)(
    "is answered in %s",
    async (name) => {
      const format = wireFormats[name];
      const ok = rpcRequest(format, name.endsWith("json") ? Buffer.from("{}") : Buffer.of(), [], getReadingProcedure);
      const fetch = serve({ getReading: () => ({ degreesCelsius: 21 }) });
      expect(readOutcome(format, await exchangeFetch(fetch, ok))).toEqual({ code: 0, message: "" });
      const failing = serve({ getReading: () => Promise.reject(new ConnectError("no", Code.NotFound)) });
      expect(readOutcome(format, await exchangeFetch(failing, ok))).toEqual({ code: Code.NotFound, message: "no" });
    },
  );

  test("needs no body for a message without fields", async () => {
    const fetch = serve({ getReading: () => ({ degreesCelsius: 21 }) });
    const headers = { "content-type": "application/proto" };
    const answer = await fetch(new Request(`http://fetch.example${getReadingProcedure}`, { method: "POST", headers }));
    expect(fromBinary(ReadingSchema, await answer.bytes()).degreesCelsius).toBe(21);
  });

  test("answers a stream with a stream, in the Connect protocol", async () => {
    const fetch = serve({
      async *controlClimate(sent) {
        for await (const { sensor } of sent) yield { sensor };
      },
    });
    const body = Buffer.concat(["a", "b"].map((sensor) => encodeEnvelope(0, Buffer.from(JSON.stringify({ sensor })))));
    const header: Field[] = [["content-type", "application/connect+json"]];
    const answer = await exchangeFetch(fetch, { httpMethod: "POST", path: `${service}/ControlClimate`, header, body });
    expect(decodeEnvelopes(answer.body).map(({ bytes }) => JSON.parse(bytes.toString()))).toEqual([
      { sensor: "a" },
      { sensor: "b" },
      {},
    ]);
  });

  test("answers a stream by gRPC-Web, whoever keeps or takes away the bytes of another answer", async () => {
    const fetch = serve({
      async *watchReadings() {
        yield { sensor: "a" };
        await new Promise((resolve) => setTimeout(resolve));
        yield { sensor: "b" };
      },
    });
    const request = rpcRequest(wireFormats["grpc-web"], Buffer.of(), [], `${service}/WatchReadings`);
    const stolen = (await openFetch(fetch, request)).body;
    for await (const { buffer } of stolen ?? []) structuredClone(buffer, { transfer: [buffer] });
    const answer = await exchangeFetch(fetch, request);
    const [first, second, end] = decodeEnvelopes(answer.body);
    const sensors = [first, second].map((envelope) => fromBinary(ReadingSchema, envelope?.bytes ?? Buffer.of()).sensor);
    expect([sensors, end?.bytes.toString()]).toEqual([["a", "b"], "grpc-status: 0\r\n"]);
  });

  test.each([
    {
      why: "with the default error record",
      options: {},
      body: '{"code":3,"status":"INVALID_ARGUMENT","message":"gRPC cannot be served here, gRPC-Web can","details":[]}',
    },
    {
      why: "with the error record of the program",
      options: {
        rest: { errorRecord: (_: unknown, { httpStatus }: { httpStatus: number }) => ({ httpStatus, body: "no" }) },
      },
      body: '"no"',
    },
  ])("is refused in gRPC, which needs trailers, $why", async ({ options, body }) => {
    const fetch = serve({ getReading: () => ({}) }, options);
    const message = toBinary(ReadingSchema, { $typeName: "greenhouse.v1.Reading", sensor: "", degreesCelsius: 0 });
    const unknown = await exchangeFetch(serve({}), rpcRequest(wireFormats.grpc, message, [], `${service}/Nothing`));
    expect(readOutcome(wireFormats.grpc, unknown).code).toBe(Code.Unimplemented);
    const request = rpcRequest(wireFormats.grpc, message, [], getReadingProcedure);
    const answer = await exchangeFetch(fetch, request);
    expect([answer.httpStatus, answer.body.toString()]).toEqual([415, body]);
    expect(fieldValue(answer.header, "grpc-status")).toBeUndefined();
  });
});

const upload = (coding: string, body: Buffer): HttpRequest => {
  const header: Field[] = [
    ["content-type", "application/x-ndjson"],
    ["content-encoding", coding],
  ];
  return { httpMethod: "POST", path: "/readings", header, body };
};

const copy = async (bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(bytes);

describe("a stream of a client over Fetch", () => {
  const post = { case: "post", value: "/readings" } as const;
  const rules = [{ selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern: post, body: "*" }];
  const record = (acceptCompression?: Compression[]): FetchHandler =>
    serve(
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

  test("is read in gzip", async () => {
    const answer = await exchangeFetch(record(), upload("gzip", gzipSync(lines)));
    expect([answer.httpStatus, answer.body.toString()]).toEqual([200, '{"count":2}']);
    expect((await exchangeFetch(record(), upload("gzip", lines))).httpStatus).toBe(400);
  });

  test("in gzip is answered before its end by a handler that reads no further", async () => {
    const fetch = serve(
      {
        async recordReadings(sent) {
          for await (const _ of sent) break;
          return { count: 1 };
        },
      },
      { rest: { rules } },
    );
    const { header } = upload("gzip", lines);
    using sending = openFetchUpload(fetch, ["POST", "/readings"], header);
    sending.write(gzipSync(lines, { finishFlush: constants.Z_SYNC_FLUSH }));
    expect((await within(sending.readAnswer(), "the answer")).body.toString()).toBe('{"count":1}');
  });

  const whole: Compression = { name: "whole", compress: copy, decompress: copy };
  test.each([
    { why: "that is not there", coding: "br", available: undefined, readable: "gzip" },
    { why: "of the program's, which cannot read pieces", coding: "whole", available: [whole], readable: "identity" },
  ])("is refused in a coding $why, by a list of those that are read", async ({ coding, available, readable }) => {
    const { httpStatus, header } = await exchangeFetch(record(available), upload(coding, lines));
    expect([httpStatus, fieldValue(header, "accept-encoding")]).toEqual([415, readable]);
  });
});

describe("a request over Fetch", () => {
  test.each([
    { what: "a URL", request: { ...reading, path: `/${"a".repeat(101)}` }, httpStatus: 414 },
    { what: "a header", request: { ...reading, header: [["a", "b".repeat(500)]] as const }, httpStatus: 431 },
    { what: "a header of many fields", request: { ...reading, header: manyFields(20) }, httpStatus: 431 },
    { what: "a body", request: { ...water, body: Buffer.alloc(101, "1") }, httpStatus: 413 },
  ])("is refused with $httpStatus for $what above its limit", async ({ request, httpStatus }) => {
    const fetch = serve({}, { limits: { urlBytes: 100, headerBytes: 500 }, readMaxBytes: 100 });
    expect((await exchangeFetch(fetch, request)).httpStatus).toBe(httpStatus);
  });

  test("may have a header as large as its limit", async () => {
    // As HTTP/2 counts: 32 bytes beside each name and value (RFC 9113 §6.5.2).
    const header = new Headers(Array.from({ length: 5 }, (_, at) => [`x-${at}`, "y".repeat(65)]));
    const fetch = serve({}, { limits: { headerBytes: 500 } });
    expect((await fetch(new Request("https://garden.example/a", { headers: header }))).status).toBe(404);
    header.set("x-0", "y".repeat(66));
    expect((await fetch(new Request("https://garden.example/a", { headers: header }))).status).toBe(431);
  });

  test("is not read any further than its limit, nor at all where its length is above it", async () => {
    let asked = 0;
    const pull: Pull = (controller) => {
      asked += 1;
      controller.enqueue(new Uint8Array(10));
    };
    const fetch = serve({}, { readMaxBytes: 100 });
    expect((await fetch(pulled(pull))).status).toBe(413);
    expect(asked).toBe(11);
    const announced = pulled(pull);
    announced.headers.set("content-length", "101");
    expect((await fetch(announced)).status).toBe(413);
    expect(asked).toBe(11);
  });

  test("is kept in few pieces, however many it comes in", async () => {
    const pieces: WeakRef<Uint8Array>[] = [];
    const pull: Pull = (controller) => {
      const piece = new Uint8Array([0x20]);
      pieces.push(new WeakRef(piece));
      controller.enqueue(piece);
    };
    const kept = Promise.withResolvers<number>();
    const fetch = serve({});
    const answer = fetch(
      pulled((controller) => {
        if (pieces.length < 1_000) return pull(controller);
        // What a WeakRef was made of in this turn stays until its end.
        setImmediate(() => {
          collectGarbage();
          kept.resolve(pieces.filter((piece) => piece.deref() !== undefined).length);
          controller.error(new Error("enough"));
        });
      }),
    );
    expect(await within(kept.promise, "a thousand pieces")).toBeLessThan(100);
    expect((await answer).status).toBe(499);
  });

  test("is not kept in memory while more of its stream is awaited", async () => {
    const chunks: WeakRef<ArrayBuffer>[] = [];
    let isKept = true;
    const pull: Pull = async (controller) => {
      if (chunks.length === 0) {
        // Thousands of empty messages.
        const { buffer } = new Uint8Array(65_000);
        chunks.push(new WeakRef(buffer));
        return controller.enqueue(new Uint8Array(buffer));
      }
      // A slow machine reads the messages in several turns.
      for (let turn = 0; turn < 100 && isKept; turn += 1) {
        await new Promise(setImmediate);
        collectGarbage();
        isKept = chunks.some((chunk) => chunk.deref() !== undefined);
      }
      controller.close();
    };
    const fetch = serve({
      recordReadings: async (messages) => {
        const iterator = messages[Symbol.asyncIterator]();
        let count = 0;
        while ((await iterator.next()).done !== true) count += 1;
        return { count };
      },
    });
    const { body } = pulled(pull);
    const headers = { "content-type": "application/connect+proto" };
    const url = `http://fetch.example${service}/RecordReadings`;
    const answer = await fetch(new Request(url, { method: "POST", headers, body, duplex: "half" }));
    expect([answer.status, isKept]).toEqual([200, false]);
  });

  test("takes memory for what has arrived of it, whatever its base64 would mean as a prefix", async () => {
    const arrived = Promise.withResolvers<void>();
    const left = new AbortController();
    let sentBytes = 0;
    const { body } = pulled((controller) => {
      if (sentBytes >= 1_000_000) return arrived.resolve();
      sentBytes += 100_000;
      controller.enqueue(new Uint8Array(100_000).fill(0x41));
    });
    const headers = { "content-type": "application/grpc-web-text+proto" };
    const url = `http://fetch.example${service}/WaterBed`;
    const before = await heldBytes();
    const answer = serve({})(new Request(url, { method: "POST", headers, body, duplex: "half", signal: left.signal }));
    await within(arrived.promise, "the body");
    const takenBytes = (await heldBytes()) - before;
    left.abort();
    await answer;
    expect(takenBytes).toBeLessThan(3 * sentBytes);
  });

  test.each<{ what: string; pull: Pull }>([
    { what: "breaks off", pull: (controller) => controller.error(new Error("broken")) },
    { what: "is not made of bytes", pull: (controller) => controller.enqueue("{}") },
  ])("is never handed on where its body $what", async ({ pull }) => {
    let called = false;
    const fetch = serve({
      waterBed: () => {
        called = true;
        return {};
      },
    });
    const response = await fetch(pulled(pull));
    expect([response.status, await response.text(), called]).toEqual([499, "", false]);
  });

  test("is answered 500 where its body was read before, or is being read", async () => {
    const fetch = serve({ waterBed: () => ({}) });
    const read = pulled((controller) => controller.close());
    await read.arrayBuffer();
    const locked = pulled((controller) => controller.close());
    locked.body?.getReader();
    const begun = pulled((controller) => controller.enqueue(new Uint8Array(1)));
    const reader = begun.body?.getReader();
    await reader?.read();
    reader?.releaseLock();
    for (const request of [read, locked, begun]) {
      const response = await fetch(request);
      expect(response.status).toBe(500);
      expect(await response.text()).toContain("mount the gateway before any body parser");
    }
  });

  describe("is answered once, as one whose body was read before, where the program", () => {
    const taken = [
      { how: "locks", take: (request: Request) => void request.body?.getReader() },
      { how: "reads", take: async (request: Request) => void (await request.arrayBuffer()) },
    ];
    const calls = [
      { path: "/beds/7:water", type: "application/json", sent: "{}", status: 500 },
      { path: "/readings", type: "application/x-ndjson", sent: "{}", status: 500 },
      { path: `${service}/WaterBed`, type: "application/json", sent: "{}", status: 500 },
      { path: `${service}/WaterBed`, type: "application/grpc-web", sent: "\0".repeat(5), status: 200 },
      { path: `${service}/RecordReadings`, type: "application/connect+proto", sent: "\0".repeat(5), status: 200 },
    ];
    const hooks = ["admit", "requestGate"] as const;
    const rows = taken.flatMap((by) => calls.flatMap((call) => hooks.map((hook) => ({ ...by, ...call, hook }))));

    test.each(rows)("$how it in $hook: $path of $type", async ({ take, hook, path, type, sent, status }) => {
      const handled: unknown[] = [];
      const answered: unknown[] = [];
      const headers = { "content-type": type };
      const request = new Request(`http://fetch.example${path}`, { method: "POST", headers, body: sent });
      const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
      const fetch = serve(
        {
          waterBed: (message) => {
            handled.push(message);
            return {};
          },
          recordReadings: async (messages) => {
            for await (const message of messages) handled.push(message);
            return {};
          },
        },
        {
          rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] },
          [hook]: () => take(request),
          onAnswer: ({ error }) => answered.push(error?.code),
        },
      );
      const answer = await within(fetch(request), "an answer");
      const text = decodeURIComponent(await answer.text());
      expect(text).toContain("the request body was read before the gateway got it");
      expect({ status: answer.status, answered, handled }).toEqual({ status, answered: [Code.Internal], handled: [] });
    });
  });

  test.each([
    { where: "inside of", end: -8 },
    { where: "behind", end: undefined },
  ])("that breaks off $where gzip is told of as given up, not as malformed or whole", async ({ end }) => {
    const failed = Promise.withResolvers<unknown>();
    const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
    const fetch = serve(
      {
        recordReadings: async (messages) => {
          try {
            for await (const { sensor } of messages) expect(sensor).toBe("one");
          } catch (error) {
            failed.resolve(error);
          }
          return {};
        },
      },
      { rest: { rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*" }] } },
    );
    const begun = gzipSync('{"sensor":"one"}\n').subarray(0, end);
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(begun)),
      pull: (controller) => controller.error(new Error("broken")),
    });
    const headers = { "content-type": "application/x-ndjson", "content-encoding": "gzip" };
    await fetch(new Request("http://fetch.example/readings", { method: "POST", headers, body, duplex: "half" }));
    expect(await within(failed.promise, "the end of the messages")).toMatchObject({ code: Code.Canceled });
  });

  test("of no bytes is an empty message in gzip too, and one byte is not gzip", async () => {
    const fetch = serve({ waterBed: () => ({}) });
    const statuses: number[] = [];
    for (const bytes of [0, 1]) {
      const headers = { "content-type": "application/proto", "content-encoding": "gzip" };
      const init = { method: "POST", headers, body: new Uint8Array(bytes) };
      statuses.push((await fetch(new Request(`http://fetch.example${service}/WaterBed`, init))).status);
    }
    expect(statuses).toEqual([200, 400]);
  });

  test("is passed on where nothing matches, before it is admitted", async () => {
    const fetch = serve(
      {},
      {
        admit: () => {
          throw new ConnectError("stay out", Code.Unauthenticated);
        },
      },
    );
    const ask = async (path: string, method = "GET"): Promise<number> =>
      (await fetch(new Request(`http://fetch.example${path}`, { method }), { next: acceptElsewhere })).status;
    expect([await ask("/nowhere"), await ask("/sensors/palm/reading")]).toEqual([202, 401]);
    // The path is the gateway's, whatever the method.
    expect(await ask("/sensors/palm/reading", "PUT")).toBe(401);
    expect((await fetch(new Request("http://fetch.example/nowhere"))).status).toBe(401);
  });

  test("brings along what its server knows of it", async () => {
    const key = createContextKey("nobody");
    const answers: AnsweredRequest[] = [];
    const options = { onAnswer: (answer: AnsweredRequest) => void answers.push(answer) };
    const fetch = serve({ getReading: (_, { values }) => ({ sensor: values.get(key) }) }, options);
    const peer = { address: "192.0.2.1", port: 7 };
    const request = new Request("http://fetch.example/sensors/palm/reading?");
    const response = await fetch(request, { peer, contextValues: createContextValues().set(key, "flora") });
    expect(await response.json()).toEqual({ sensor: "flora" });
    expect(answers).toMatchObject([{ peer, path: "/sensors/palm/reading", httpStatus: 200, protocol: "rest" }]);
    await fetch(new Request("http://fetch.example/sensors/palm/reading#fragment"));
    expect(answers[1]).toMatchObject({
      peer: { address: "", port: 0 },
      path: "/sensors/palm/reading",
      // Nobody tells it.
      httpVersion: undefined,
      httpStatus: 200,
    });
  });
});

function manyFields(count: number): Field[] {
  return Array.from({ length: count }, (_, at) => [`f${String(at)}`, ""]);
}

describe("an answer over Fetch", () => {
  test.each([
    { httpStatus: 200, body: "text" },
    { httpStatus: 205, body: "" },
    { httpStatus: 304, body: "" },
  ])("has a body with status $httpStatus only where that may have one", async ({ httpStatus, body }) => {
    const endpoint = { path: "/page", open: true, answer: () => ({ httpStatus, body: "text" }) };
    const fetch = serve({}, { endpoints: [endpoint] });
    const page = { httpMethod: "GET", path: "/page", header: [] };
    const answer = await exchangeFetch(fetch, page);
    expect([answer.httpStatus, answer.body.toString()]).toEqual([httpStatus, body]);
    const head = await exchangeFetch(fetch, { ...page, httpMethod: "HEAD" });
    expect([head.httpStatus, head.body.toString(), fieldValue(head.header, "content-length")]).toEqual([
      httpStatus,
      "",
      "4",
    ]);
  });

  test("keeps several fields of one name apart, as cookies must be", async () => {
    const fetch = serve({
      getReading: (_, { responseHeader }) => {
        responseHeader.append("set-cookie", "a=1");
        responseHeader.append("set-cookie", "b=2");
        return {};
      },
    });
    const response = await fetch(new Request("http://fetch.example/sensors/palm/reading"));
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  test("is 500 and nothing else where it cannot be written, and the program is told why", async () => {
    const faults: unknown[] = [];
    const fetch = serve(
      { getReading: () => Promise.reject(new ConnectError("no", Code.NotFound)) },
      {
        rest: { errorRecord: () => ({ httpStatus: 404, contentType: "a\nb", body: "secret" }) },
        onFault: (error) => void faults.push(error),
      },
    );
    const answer = await exchangeFetch(fetch, reading);
    expect([answer.httpStatus, answer.header, answer.body.toString()]).toEqual([500, [], ""]);
    expect(faults).toHaveLength(1);
  });

  test.each([
    { how: "is sent whole", request: reading, read: (response: Response) => response.text() },
    { how: "is streamed", request: readings, read: (response: Response) => response.text() },
    { how: "is cancelled", request: readings, read: (response: Response) => response.body?.cancel() },
  ])("leaves no listener at the signal of its request once it $how", async ({ request, read }) => {
    const implementation: Greenhouse = {
      getReading: () => ({}),
      async *watchReadings() {
        yield {};
        await new Promise(setImmediate);
        yield {};
      },
    };
    const sent = new Request(`http://fetch.example${request.path}`);
    const answer = await serve(implementation)(sent);
    await read(answer);
    expect(getEventListeners(sent.signal, "abort")).toEqual([]);
  });

  test("asks its handler for no more than its reader takes", async () => {
    let asked = 0;
    const fetch = serve({
      async *watchReadings() {
        for await (const message of endless()) {
          asked += 1;
          yield message;
        }
      },
    });
    const { body } = await openFetch(fetch, readings);
    const reader = body?.getReader();
    await reader?.read();
    // It stands still once two turns are collected, which hold 64 KiB each.
    let before = -1;
    await expect
      .poll(() => {
        const stands = asked === before;
        before = asked;
        return stands;
      })
      .toBe(true);
    expect(asked).toBeLessThan(50);
    let bytes = 0;
    while (bytes < 1024 * 1024) bytes += (await reader?.read())?.value?.byteLength ?? 0;
    expect(asked).toBeGreaterThan(100);
    await reader?.cancel();
  });
});

describe("a client over Fetch that goes away", () => {
  test("before its request is served, is not served", async () => {
    let called = false;
    const fetch = serve({
      getReading: () => {
        called = true;
        return {};
      },
    });
    expect((await openFetch(fetch, reading, AbortSignal.abort())).status).toBe(499);
    expect(called).toBe(false);
  });

  test("while its body is read, is not served", async () => {
    const controller = new AbortController();
    const body = pulled(() => controller.abort());
    const response = await within(
      serve({ waterBed: () => ({}) })(new Request(body, { signal: controller.signal })),
      "an answer",
    );
    expect(response.status).toBe(499);
  });

  test("while its handler runs, ends the call", async () => {
    const controller = new AbortController();
    const reason = Promise.withResolvers<unknown>();
    const fetch = serve({
      getReading: async (_, { signal }) => {
        controller.abort();
        reason.resolve(await reasonOf(signal));
        return {};
      },
    });
    expect((await openFetch(fetch, reading, controller.signal)).status).toBe(499);
    expect(await reason.promise).toMatchObject({ code: Code.Canceled });
  });

  test("while its endpoint answers, is told of as such", async () => {
    const controller = new AbortController();
    const reported = Promise.withResolvers<object>();
    const answer: Endpoint["answer"] = async () => {
      controller.abort();
      return { httpStatus: 200, body: "late" };
    };
    const onAnswer = ({ httpStatus, error }: AnsweredRequest): void =>
      reported.resolve({ httpStatus, code: error?.code });
    const fetch = serve({}, { endpoints: [{ path: "/page", open: true, answer }], onAnswer });
    const page: HttpRequest = { httpMethod: "GET", path: "/page", header: [] };
    expect((await openFetch(fetch, page, controller.signal)).status).toBe(499);
    expect(await within(reported.promise, "onAnswer")).toEqual({ httpStatus: 0, code: Code.Canceled });
  });

  test.each([
    { how: "by cancelling the body", leave: (body: ReadableStream<Uint8Array>) => body.cancel() },
    { how: "by its signal", leave: (_: unknown, controller: AbortController) => controller.abort() },
  ])("from a stream $how, ends the call", async ({ leave }) => {
    const controller = new AbortController();
    const reason = Promise.withResolvers<unknown>();
    const fetch = serve({
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

  test("from a stream that it does not read, ends the handler", async () => {
    const left = Promise.withResolvers<void>();
    const fetch = serve({
      async *watchReadings() {
        try {
          yield* endless();
        } finally {
          left.resolve();
        }
      },
    });
    const { body } = await openFetch(fetch, readings);
    await body?.cancel();
    await within(left.promise, "the end of the handler");
  });
});
