import { randomBytes } from "node:crypto";
import { createHook } from "node:async_hooks";
import { EventEmitter, once } from "node:events";
import { createBrotliDecompress, createGunzip, createZstdDecompress, gunzipSync } from "node:zlib";
import type { JsonValue } from "@bufbuild/protobuf";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type GatewayOptions, createGateway } from "../../../../src/index.ts";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { FileService } from "../../../../../testing/src/gen/files/v1/files_pb.ts";
// oxfmt-ignore
import { exchange, exchangeFetch, fieldValue, type HttpRequest, type HttpResponse, onFirstWay, openHttp1, openResponse,
  reasonOf, restWays, startGreenhouse, type TestGreenhouse, TextCollector, within } from "@protoport/testing";

const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
  { selector, pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
];

const stuck: Promise<never> = new Promise(() => {});

/** Yields `count` readings, and then throws if the sensor is "broken". */
async function* watchReadings({ sensor, count }: { sensor: string; count: number }) {
  for (let at = 0; at < count; at += 1) yield { sensor: `s${at}` };
  if (sensor === "broken") throw new ConnectError("no sensor", Code.NotFound);
}

/** Blocks the process until the header timer is due, and then fails when a message to itself has arrived. */
async function* failLate() {
  const { port1, port2 } = new MessageChannel();
  const come = once(port2, "message").finally(() => port1.close());
  port1.postMessage("");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await come;
  yield await Promise.reject(new ConnectError("no sensor", Code.NotFound));
}

describe.each(restWays)("a server stream on REST over $name", (way) => {
  const { version, http2 } = way;
  const start = (
    implementation: Parameters<typeof startGreenhouse>[0] = { watchReadings },
    rest: GatewayOptions["rest"] = {},
  ): Promise<TestGreenhouse> => startGreenhouse(implementation, { rest: { rules, ...rest } }, { http2 });
  const send = async ({ address, gateway }: TestGreenhouse, request: HttpRequest): Promise<HttpResponse> =>
    version === "fetch" ? await exchangeFetch(gateway.fetch, request) : await exchange(address, version, request);
  const get = async (greenhouse: TestGreenhouse, path: string, accept?: string): Promise<HttpResponse> => {
    const header: [string, string][] = accept === undefined ? [] : [["accept", accept]];
    return await send(greenhouse, { httpMethod: "GET", path, header });
  };

  const record = '{"code":5,"status":"NOT_FOUND","message":"no sensor","details":[]}';
  test.each(
    // oxfmt-ignore
    [
      { accept: undefined, type: "application/x-ndjson", two: '{"sensor":"s0"}\n{"sensor":"s1"}\n', none: "",
        failed: `{"sensor":"s0"}\n{"@error":${record}}\n` },
      { accept: "application/jsonl", type: "application/jsonl", two: '{"sensor":"s0"}\n{"sensor":"s1"}\n', none: "",
        failed: `{"sensor":"s0"}\n{"@error":${record}}\n` },
      { accept: "application/json", type: "application/json", two: '[{"sensor":"s0"},\n{"sensor":"s1"}]', none: "[]",
        failed: `[{"sensor":"s0"},\n{"@error":${record}}]` },
      { accept: "text/event-stream", type: "text/event-stream",
        two: 'retry: 3000\ndata: {"sensor":"s0"}\n\ndata: {"sensor":"s1"}\n\nevent: end\ndata: {}\n\n',
        none: "event: end\ndata: {}\n\n",
        failed: `retry: 3000\ndata: {"sensor":"s0"}\n\nevent: error\ndata: ${record}\n\n` },
    ],
  )("with Accept $accept is sent in the $type format", async ({ accept, type, two, none, failed }) => {
    await using greenhouse = await start();
    const answer = await get(greenhouse, "/sensors/a/readings?count=2", accept);
    expect([answer.httpStatus, fieldValue(answer.header, "content-type")]).toEqual([200, type]);
    expect([fieldValue(answer.header, "vary"), answer.body.toString()]).toEqual(["accept", two]);
    expect((await get(greenhouse, "/sensors/a/readings", accept)).body.toString()).toBe(none);
    const cut = await get(greenhouse, "/sensors/broken/readings?count=1", accept);
    expect([cut.httpStatus, cut.body.toString()]).toEqual([200, failed]);
  });

  test.each(
    onFirstWay(way, [
      ["*/*", "application/x-ndjson"],
      ["application/*", "application/x-ndjson"],
      ["text/*", "text/event-stream"],
      ["application/json;q=0.5, text/event-stream;q=0.4", "application/json"],
      ["application/x-ndjson;q=0, */*", "application/json"],
      ["application/x-ndjson, application/jsonl, application/json, text/event-stream", "application/json"],
      ["application/json, text/plain, */*", "application/json"],
      ["application/jsonl, application/*;q=0.9", "application/jsonl"],
      ["application/jsonl;q=0.8, application/*;q=0.9", "application/x-ndjson"],
      ["Text/Event-Stream", "text/event-stream"],
      ["text/event-stream; charset=utf-8", "text/event-stream"],
      ["application/json;v=1;q=0.1, application/jsonl; Q=0.2", "application/jsonl"],
      ["image/png", "application/x-ndjson"],
      ["application/json;q=0.1, */*;q=0.2", "application/x-ndjson"],
      [";;;,q=,\u00e9", "application/x-ndjson"],
      [`${"a/b,".repeat(16)}application/json`, "application/x-ndjson"],
      ["application/json; q=0.1, text/event-stream", "text/event-stream"],
      // Beyond the part that is read.
      [`application/json;q=0.1;a=${"a".repeat(1024)}, text/event-stream`, "application/json"],
    ]),
  )("with Accept %s is sent in the %s format", async (accept, type) => {
    await using greenhouse = await start();
    const answer = await get(greenhouse, "/sensors/a/readings?count=1", accept);
    expect(fieldValue(answer.header, "content-type")).toBe(type);
  });

  test("wraps its messages like grpc-gateway if the service has streamInResults", async () => {
    await using greenhouse = await start(undefined, { service: () => ({ streamInResults: true }) });
    const answer = await get(greenhouse, "/sensors/broken/readings?count=1");
    expect(fieldValue(answer.header, "content-type")).toBe("application/json");
    expect(answer.body.toString()).toBe(`{"result":{"sensor":"s0"}}\n{"error":${record}}\n`);
  });

  test("has the HTTP status of an error thrown before the first message", async () => {
    await using greenhouse = await start();
    const answer = await get(greenhouse, "/sensors/broken/readings", "text/event-stream");
    expect([answer.httpStatus, answer.body.toString()]).toEqual([404, record]);
    expect(fieldValue(answer.header, "content-type")).toBe("application/json");
  });

  test.each([
    ["application/x-ndjson", '{"sensor":"late"}\n', `{"@error":${record}}\n`],
    ["application/json", '[{"sensor":"late"}', `,\n{"@error":${record}}]`],
    ["text/event-stream", 'retry: 3000\ndata: {"sensor":"late"}\n\n', `event: error\ndata: ${record}\n\n`],
  ])("in the %s format sends its header before its first message", async (accept, message, end) => {
    const next = new EventEmitter();
    await using greenhouse = await start({
      async *watchReadings(_, { responseHeader }) {
        responseHeader.set("x-early", "1");
        await once(next, "go");
        responseHeader.set("x-late", "1");
        yield { sensor: "late" };
        await once(next, "go");
        throw new ConnectError("no sensor", Code.NotFound);
      },
    });
    using answer = await openResponse(greenhouse, version, "/sensors/a/readings", [["accept", accept]]);
    const fields = ["content-type", "x-early", "x-late"].map((name) => fieldValue(answer.header, name));
    expect(fields).toEqual([accept, "1", undefined]);
    const seen = new TextCollector(answer.body);
    const ended = once(answer.body, "end");
    next.emit("go");
    await seen.until(message);
    next.emit("go");
    await seen.until(end);
    await within(ended, "the end of the stream");
  });

  test("ends with an error record if it fails after its early header", async () => {
    const fail = Promise.withResolvers<never>();
    await using greenhouse = await start({
      // oxlint-disable-next-line require-yield -- it fails before it has anything
      watchReadings: async function* () {
        await fail.promise;
      },
    });
    using answer = await openResponse(greenhouse, version, "/sensors/a/readings");
    const seen = new TextCollector(answer.body);
    fail.reject(new ConnectError("no sensor", Code.NotFound));
    await seen.until(`{"@error":${record}}\n`);
  });

  test("responds to HEAD without waiting for the first message", async () => {
    const ended = Promise.withResolvers<unknown>();
    await using greenhouse = await start({
      async *watchReadings(_, { signal }) {
        ended.resolve(await reasonOf(signal));
        yield { sensor: "late" };
      },
    });
    const answer = await send(greenhouse, { httpMethod: "HEAD", path: "/sensors/a/readings", header: [] });
    expect([answer.httpStatus, fieldValue(answer.header, "content-type")]).toEqual([200, "application/x-ndjson"]);
    await within(ended.promise, "the end of the call");
  });

  test("has the HTTP status of an error from a later event-loop turn", async () => {
    await using greenhouse = await start({
      // oxlint-disable-next-line require-yield -- it fails before it has anything
      watchReadings: async function* () {
        for (let turn = 0; turn < 3; turn += 1) await nextTurn();
        throw new ConnectError("no sensor", Code.NotFound);
      },
    });
    const answer = await get(greenhouse, "/sensors/a/readings");
    expect([answer.httpStatus, answer.body.toString()]).toEqual([404, record]);
  });

  test.each([
    { coding: "gzip", decoder: () => createGunzip() },
    { coding: "br", decoder: () => createBrotliDecompress() },
    { coding: "zstd", decoder: () => createZstdDecompress() },
  ])("is compressed with $coding and flushed after each message", async ({ coding, decoder }) => {
    const next = new EventEmitter();
    await using greenhouse = await start({
      async *watchReadings({ count }) {
        for (let at = 0; at < count; at += 1) {
          yield { sensor: `s${at}` };
          await once(next, "go");
        }
      },
    });
    const accepting = Object.entries({ accept: "text/event-stream", "accept-encoding": coding });
    using answer = await openResponse(greenhouse, version, "/sensors/a/readings?count=3", accepting);
    expect(fieldValue(answer.header, "content-encoding")).toBe(coding);
    expect(fieldValue(answer.header, "vary")).toBe("accept, accept-encoding");
    const plain = answer.body.pipe(decoder());
    const seen = new TextCollector(plain);
    const ended = once(plain, "end");
    for (let at = 0; at < 3; at += 1) {
      await seen.until(`data: {"sensor":"s${at}"}\n\n`);
      next.emit("go");
    }
    await seen.until("event: end\ndata: {}\n\n");
    await within(ended, "the end of the coding");
  });

  test.each([
    { acceptEncoding: "gzip;q=0, identity", count: 100, coding: undefined },
    { acceptEncoding: "gzip", count: 1, coding: undefined },
    { acceptEncoding: "gzip", count: 100, coding: "gzip" },
  ])("has Content-Encoding $coding with Accept-Encoding $acceptEncoding and $count message(s)", async (row) => {
    await using greenhouse = await start();
    const header: [string, string][] = [["accept-encoding", row.acceptEncoding]];
    const path = `/sensors/a/readings?count=${row.count}`;
    const answer = await send(greenhouse, { httpMethod: "GET", path, header });
    expect(fieldValue(answer.header, "content-encoding")).toBe(row.coding);
    const body = row.coding === undefined ? answer.body : gunzipSync(answer.body);
    expect(body.toString().split("\n").length).toBe(row.count + 1);
  });

  // Over Fetch, the platform has the timeout for slow readers. For a mounted handler, the application's server has it.
  if (version !== "fetch" && http2 === "listening")
    test("is aborted when its client stops reading for too long", async () => {
      let ended = Promise.withResolvers<unknown>();
      await using greenhouse = await startGreenhouse(
        {
          async *watchReadings(_, { signal }) {
            void reasonOf(signal).then(ended.resolve);
            for (let at = 0; ; at += 1) yield { sensor: randomBytes(5_000).toString("hex") };
          },
        },
        { rest: { rules }, limits: { idleTimeoutMs: 200 } },
        { http2 },
      );
      for (const coding of ["identity", "gzip"]) {
        ended = Promise.withResolvers();
        using answer = await openResponse(greenhouse, version, "/sensors/a/readings", [["accept-encoding", coding]]);
        answer.body.on("error", () => undefined);
        expect(await within(ended.promise, "the end of the call")).toBeInstanceOf(Error);
      }
    });

  test("sends its header fields, and no trailers", async () => {
    await using greenhouse = await start({
      async *watchReadings(_, { responseHeader, responseTrailer }) {
        responseHeader.set("x-early", "1");
        yield { sensor: "s" };
        responseHeader.set("x-late", "1");
        responseTrailer.set("x-trailer", "1");
      },
    });
    const { header } = await get(greenhouse, "/sensors/a/readings");
    const names = ["x-early", "x-late", "x-trailer"];
    expect(names.map((name) => fieldValue(header, name))).toEqual(["1", undefined, undefined]);
  });

  test("responds to HEAD with its header, and stops the handler", async () => {
    const left = Promise.withResolvers<void>();
    await using greenhouse = await start({
      async *watchReadings() {
        try {
          for (;;) yield { sensor: "s" };
        } finally {
          left.resolve();
        }
      },
    });
    const answer = await send(greenhouse, { httpMethod: "HEAD", path: "/sensors/a/readings", header: [] });
    expect([answer.httpStatus, answer.body.byteLength]).toEqual([200, 0]);
    expect(fieldValue(answer.header, "content-type")).toBe("application/x-ndjson");
    await within(left.promise, "the end of the handler");
  });

  test("ends with an error record at its deadline", async () => {
    let reason: Promise<unknown> | undefined;
    await using greenhouse = await start({
      async *watchReadings(_, { signal }) {
        reason = reasonOf(signal);
        yield { sensor: "s" };
        await reason;
        yield { sensor: "late" };
      },
    });
    const request = { httpMethod: "GET", path: "/sensors/a/readings", header: [["x-server-timeout", "0.2"]] } as const;
    const answer = await send(greenhouse, request);
    expect(answer.body.toString()).toMatch(/^\{"sensor":"s"\}\n\{"@error":\{"code":4,.*\}\}\n$/);
    await expect(reason).resolves.toMatchObject({ code: Code.DeadlineExceeded });
  });
});

const routes: GatewayOptions["routes"] = (router) => router.service(GreenhouseService, {});

describe("a server stream on REST", () => {
  test.each([
    { name: "with interceptors", request: { httpMethod: "GET", path: "/sensors/undecided/readings" } },
    { name: "of HttpBody messages", request: { httpMethod: "GET", path: "/downloads/a" } },
    { name: "in a bidirectional RPC", request: { httpMethod: "POST", path: "/climate" } },
  ])("$name sends no header before its first message", async ({ request }) => {
    const failure = Promise.withResolvers<never>();
    const asked = Promise.withResolvers<void>();
    const fail = async (): Promise<never> => (asked.resolve(), await failure.promise);
    const failing = async function* () {
      yield await fail();
    };
    const silent = async function* () {
      yield await stuck;
    };
    const control = "greenhouse.v1.GreenhouseService.ControlClimate";
    await using greenhouse = await startGreenhouse(
      {},
      {
        routes: (router) => {
          router.service(GreenhouseService, { watchReadings: silent, controlClimate: failing });
          router.service(FileService, { download: failing });
        },
        interceptors: [(next) => async (call) => (call.url.includes("undecided") ? await fail() : await next(call))],
        rest: { rules: [...rules, { selector: control, pattern: { case: "post", value: "/climate" }, body: "*" }] },
      },
    );
    const answer = exchange(greenhouse.address, "1.1", { ...request, header: [] });
    await within(asked.promise, "the call");
    // Waits as long as a stream's header without a message is delayed.
    using _ = await openResponse(greenhouse, "1.1", "/sensors/a/readings");
    failure.reject(new ConnectError("no sensor", Code.NotFound));
    expect((await answer).httpStatus).toBe(404);
  });

  test("has an error's HTTP status even if the event loop is blocked", async () => {
    await using greenhouse = await startGreenhouse({ watchReadings: failLate }, { rest: { rules } });
    const request = { httpMethod: "GET", path: "/sensors/a/readings", header: [] };
    expect((await exchange(greenhouse.address, "1.1", request)).httpStatus).toBe(404);
  });

  test("leaves no timer running after its end", async () => {
    const inTurns = async function* (request: { sensor: string; count: number }) {
      yield { sensor: "first" };
      await nextTurn();
      yield* watchReadings(request);
    };
    const serve: GatewayOptions["routes"] = (router) => router.service(GreenhouseService, { watchReadings: inTurns });
    const { fetch: call } = createGateway({ routes: serve, rest: { rules } });
    const timers = new Set<number>();
    let watching = true;
    const hook = createHook({
      init: (id, type) => void (watching && type === "Timeout" && timers.add(id)),
      destroy: (id) => void timers.delete(id),
    }).enable();
    let started = 0;
    for (const sensor of ["a", "broken"]) {
      await (await call(new Request(`http://a/sensors/${sensor}/readings?count=1`))).text();
      started = Math.max(started, timers.size);
    }
    watching = false;
    // The hook is called one turn later.
    await nextTurn();
    hook.disable();
    expect([started > 0, timers.size]).toEqual([true, 0]);
  });

  test("ends by closing the connection for HTTP/1.0 clients", async () => {
    const handlers = {
      async *watchReadings() {
        yield { sensor: "s0" };
        // In a later turn, so that the response's length is not known when it begins.
        await new Promise((resolve) => setTimeout(resolve, 20));
        yield { sensor: "s1" };
      },
    };
    await using greenhouse = await startGreenhouse(handlers, { rest: { rules } });
    using connection = await openHttp1(greenhouse.address);
    connection.socket.write("GET /sensors/a/readings HTTP/1.0\r\n\r\n");
    const text = (await connection.readToEnd()).toString();
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).not.toMatch(/transfer-encoding/i);
    expect(text.endsWith('\r\n\r\n{"sensor":"s0"}\n{"sensor":"s1"}\n')).toBe(true);
  });

  test("applies backpressure to its handler while the client does not read", async () => {
    let asked = 0;
    const handlers = {
      async *watchReadings() {
        for (;;) {
          asked += 1;
          yield { sensor: "x".repeat(10_000) };
        }
      },
    };
    await using greenhouse = await startGreenhouse(handlers, { rest: { rules } });
    using connection = await openHttp1(greenhouse.address);
    connection.socket.pause();
    connection.socket.write("GET /sensors/a/readings HTTP/1.1\r\nHost: a\r\n\r\n");
    // The handler is paused once all buffers are full, long before the endless stream has reached gigabytes.
    let before = -1;
    await expect
      .poll(() => {
        const stands = asked > 10 && asked === before;
        before = asked;
        return stands;
      })
      .toBe(true);
    expect(asked * 10_000).toBeLessThan(64 * 1024 * 1024);
  });

  test("can end with an error record that contains integers beyond 2^53", async () => {
    const id: JsonValue = Reflect.apply(Reflect.get(JSON, "rawJSON"), JSON, ["9007199254740993"]);
    const errorRecord = () => ({ httpStatus: 404, body: { id } });
    await using greenhouse = await startGreenhouse({ watchReadings }, { rest: { rules, errorRecord } });
    const request = { httpMethod: "GET", path: "/sensors/broken/readings?count=1", header: [] };
    const { body } = await exchange(greenhouse.address, "1.1", request);
    expect(body.toString()).toBe('{"sensor":"s0"}\n{"@error":{"id":9007199254740993}}\n');
  });

  test("with an invalid rule is accepted if rest.omit contains its RPC", () => {
    const omit = [selector];
    const struct = { selector, pattern: { case: "get", value: "/x" }, body: "nothing" } as const;
    expect(() => createGateway({ routes, rest: { rules: [struct] } })).toThrow('body "nothing" is not a field');
    expect(() => createGateway({ routes, rest: { rules: [struct], omit } })).not.toThrow();
    expect(() => createGateway({ routes, rest: { omit: ["greenhouse.v1.None"] } })).toThrow(
      'omit: selector "greenhouse.v1.None" does not match an RPC',
    );
  });
});
