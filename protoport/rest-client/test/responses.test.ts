import { create, createRegistry, type DescMethod } from "@bufbuild/protobuf";
import { anyPack, anyUnpack, EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, createContextKey, createContextValues } from "@connectrpc/connect";
import type { Interceptor } from "@connectrpc/connect";
import type { ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Health } from "../../gateway/src/health/index.ts";
import { createRestTransport } from "../src/index.ts";
import { RestCalls } from "../src/rest-calls.ts";
import { RestMethod } from "../src/rest-method.ts";
import { Catalog, GetBookRequestSchema, WatchBooksRequestSchema } from "../../testing/src/gen/catalog/v1/catalog_pb.ts";
import { FileService } from "../../testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink, NestedSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { respondWith, startRestServer } from "../../testing/src/gateway/rest-server.ts";
import { within } from "@protoport/testing/process";
import { ask } from "../../testing/src/gateway/ask-rest.ts";

const registry = createRegistry(NestedSchema);
const answerNewer = (response: ServerResponse): void => respondWith(response, 200, { rpc: "x", newer: [1] });
const nested = create(NestedSchema, { text: "t" });

test.each([
  { timeoutMs: 0, sent: undefined },
  { timeoutMs: -1, sent: undefined },
  { timeoutMs: 2 ** 31, sent: "2147484S" },
  { timeoutMs: Number.POSITIVE_INFINITY, sent: "2147484S" },
])(
  "a call with the timeout $timeoutMs ms has the grpc-timeout $sent and does not expire",
  async ({ timeoutMs, sent }) => {
    await using server = await startRestServer((response) => setImmediate(answerNewer, response));
    const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
    expect((await client.query({}, { timeoutMs })).rpc).toBe("x");
    expect(server.seen.map(({ header }) => header["grpc-timeout"])).toEqual([sent]);
  },
);

describe("createRestTransport", () => {
  const redirect = "the server redirected to https://elsewhere.example/; redirects are not followed";
  test.each(
    // oxfmt-ignore
    [
      { name: "an HTML response",
        answer: (response: ServerResponse) => respondWith(response, 200, "<p>hello", "text/html"),
        want: { code: Code.Unknown, rawMessage: "the response must be application/json, got text/html" } },
      { name: "truncated JSON", answer: (response: ServerResponse) => respondWith(response, 200, '{"rpc":"x"'),
        want: { code: Code.Internal, rawMessage: expect.stringContaining("not a valid kitchensink.v1.Echo") } },
      { name: "JSON of another type", answer: (response: ServerResponse) => respondWith(response, 200, { rpc: 7 }),
        want: { code: Code.Internal, rawMessage: expect.stringContaining("rpc: ") } },
      { name: "a truncated body", answer: (response: ServerResponse) => {
          response.writeHead(200, { "content-length": 100, "content-type": "application/json" }).write('{"rpc":');
          setImmediate(() => response.destroy());
        }, want: { code: Code.Unavailable, rawMessage: "the response is incomplete" } },
      { name: "a connection closed before the response", answer: (response: ServerResponse) => response.destroy(),
        want: { code: Code.Unavailable,
          rawMessage: expect.stringContaining("cannot get a response from the server") } },
      { name: "a Content-Length of 100 MB",
        answer: (response: ServerResponse) => response.writeHead(200, { "content-length": 100_000_000 }).write("{"),
        want: { code: Code.ResourceExhausted } },
      { name: "an endless body", answer: (response: ServerResponse) => {
          response.writeHead(200);
          const more = (): void => {
            while (!response.destroyed && response.write(" ".repeat(65_536)));
          };
          response.on("drain", more);
          more();
        }, want: { code: Code.ResourceExhausted, rawMessage: "the response is larger than 4194304 bytes" } },
      ...[301, 302, 303, 307, 308].map((status) => ({
        name: `a redirect with status ${status}`,
        answer: (response: ServerResponse) =>
          response.writeHead(status, { location: "https://elsewhere.example/" }).end(),
        want: { code: Code.Unknown, rawMessage: redirect },
      })),
      { name: "a response with status 304", answer: (response: ServerResponse) => response.writeHead(304).end(),
        want: { code: Code.Unknown, rawMessage: "the server redirected; redirects are not followed" } },
    ],
  )("$name fails the call", async ({ answer, want }) => {
    const error = await ask(answer);
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject(want);
  });

  test("a call fails if fetch returns an opaque redirect", async () => {
    const properties = { ok: { value: false }, status: { value: 0 }, type: { value: "opaqueredirect" } };
    const hidden = Object.defineProperties(new Response(), properties);
    const want = { code: Code.Unknown, rawMessage: "the server redirected; redirects are not followed" };
    expect(await ask(() => undefined, { fetch: async () => hidden })).toMatchObject(want);
  });

  test("a call fails if the response is larger than readMaxBytes", async () => {
    expect(await ask(answerNewer, { readMaxBytes: 23 })).toMatchObject({ rpc: "x" });
    expect(await ask(answerNewer, { readMaxBytes: 22 })).toMatchObject({ code: Code.ResourceExhausted });
  });

  test("a call to an unreachable server fails", async () => {
    const server = await startRestServer(() => undefined);
    await server[Symbol.asyncDispose]();
    const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
    await expect(client.query({})).rejects.toMatchObject({ code: Code.Unavailable });
  });

  test("an int64 above 2^53 is read exactly, even as a JSON number", async () => {
    const answer = await ask((response) => respondWith(response, 200, '{"sink":{"fInt64":9007199254740993}}'));
    expect(answer).toMatchObject({ sink: { fInt64: 9_007_199_254_740_993n } });
  });

  test("unknown fields are ignored unless ignoreUnknownFields is false", async () => {
    expect(await ask(answerNewer)).toMatchObject({ rpc: "x" });
    const strict = await ask(answerNewer, { jsonOptions: { ignoreUnknownFields: false } });
    expect(strict).toMatchObject({ code: Code.Internal, rawMessage: expect.stringContaining("newer") });
  });
});

describe.each([200, 201, 204])("a %i response without a body", (status) => {
  test("is read as the empty message", async () => {
    await using server = await startRestServer((response) => response.writeHead(status).end());
    const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
    expect(await client.remove({ fInt64: 1n })).toEqual(create(EmptySchema));
    expect(await client.query({})).toEqual(create(KitchenSink.method.query.output));
  });

  test("is an error if the message has a required field", async () => {
    await using server = await startRestServer((response) => response.writeHead(status).end());
    const client = createClient(LegacySink, createRestTransport({ baseUrl: server.baseUrl }));
    await expect(client.keep({ name: "x" })).rejects.toMatchObject({
      code: Code.Internal,
      rawMessage: `the response with HTTP status ${String(status)} has no body, and kitchensink.v1.Legacy has required fields`,
    });
  });
});

test("an HTML response is an error, even for google.protobuf.Empty", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, "<p>Log in", "text/html"));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  await expect(client.remove({ fInt64: 1n })).rejects.toMatchObject({ code: Code.Unknown });
});

test("a response is read into the rule's response_body field", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, { text: "t", number: "5" }));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  expect(await client.responseNested({})).toMatchObject({ nested: { text: "t", number: 5n }, fString: "" });
});

test("an Any is read with the types in jsonOptions.registry", async () => {
  await using server = await startRestServer((response, { body }) => respondWith(response, 200, `{"sink":${body}}`));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl, jsonOptions: { registry } }));
  const { sink } = await client.create({ any: anyPack(NestedSchema, nested) });
  expect(sink?.any && anyUnpack(sink.any, registry)).toEqual(nested);
});

test("an interceptor receives the path template and context values of a call", async () => {
  await using server = await startRestServer((response, { header }) => {
    response.setHeader("x-answer", String(header["x-request"]));
    respondWith(response, 200, {});
  });
  const intercepted: string[] = [];
  const note = createContextKey("nothing");
  const interceptor: Interceptor = (next) => async (request) => {
    intercepted.push(
      `${request.requestMethod} ${request.url.slice(server.baseUrl.length)} ${request.contextValues.get(note)}`,
    );
    request.header.set("x-request", "yes");
    return await next(request);
  };
  const interceptors = [interceptor];
  const transport = createRestTransport({ baseUrl: server.baseUrl, interceptors });
  // The transport must not change the program's list.
  interceptors.pop();
  let answered: string | null = null;
  const contextValues = createContextValues().set(note, "noted");
  const onHeader = (header: Headers): unknown => (answered = header.get("x-answer"));
  await createClient(KitchenSink, transport).any({ fString: "x" }, { onHeader, contextValues });
  expect([answered, intercepted]).toEqual(["yes", ["GET /v1/any/{f_string} noted"]]);
  expect(server.seen).toMatchObject([{ header: { accept: "application/json", "x-request": "yes" } }]);
  expect(server.seen[0]?.header).not.toHaveProperty("content-type");
});

test("a deadline is sent as grpc-timeout, and cancels the call", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await using server = await startRestServer(() => void vi.advanceTimersByTime(200));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl, defaultTimeoutMs: 200 }));
  await expect(within(client.query({}), "the deadline")).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  expect(server.seen).toMatchObject([{ header: { "grpc-timeout": "200m" } }]);
  await expect.poll(() => server.open()).toBe(0);
});

test.each(
  (["query", "unbound"] as const).flatMap((rpc) => [
    { rpc, title: "after the default 60 seconds", options: {}, call: {}, code: Code.DeadlineExceeded },
    {
      rpc,
      title: "only on cancellation with defaultTimeoutMs: 0,",
      options: { defaultTimeoutMs: 0 },
      call: {},
      code: Code.Canceled,
    },
    { rpc, title: "only on cancellation with timeoutMs: 0,", options: {}, call: { timeoutMs: 0 }, code: Code.Canceled },
  ]),
)("a call to $rpc fails $title despite interim responses", async ({ rpc, options, call, code }) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const canceller = new AbortController();
  await using server = await startRestServer((response) => {
    for (let count = 0; count < 3; count += 1) response.writeProcessing();
    vi.advanceTimersByTime(59_999);
    vi.advanceTimersByTime(1);
    canceller.abort();
  });
  const transport = createRestTransport({ baseUrl: server.baseUrl, onUnbound: "connect", ...options });
  const called = createClient(KitchenSink, transport)[rpc]({}, { signal: canceller.signal, ...call });
  await expect(within(called, "the end of the call")).rejects.toMatchObject({ code });
  expect(server.seen[0]?.header).not.toHaveProperty("grpc-timeout");
});

test("a deadline with Connect's protocol is limited to the longest timer delay", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const transport = createRestTransport({ baseUrl: server.baseUrl, onUnbound: "connect" });
  await createClient(KitchenSink, transport).unbound({}, { timeoutMs: 2 ** 31 });
  expect(server.seen).toMatchObject([{ header: { "connect-timeout-ms": "2147483647" } }]);
});

test("a stream with Connect's protocol has no deadline with defaultTimeoutMs: 0", async () => {
  // A Connect EndStreamResponse.
  const end = Buffer.from([2, 0, 0, 0, 2, ...Buffer.from("{}")]);
  await using server = await startRestServer((response) => respondWith(response, 200, end, "application/connect+json"));
  const options = { baseUrl: server.baseUrl, onUnbound: "connect", defaultTimeoutMs: 0 } as const;
  const messages = createClient(Health, createRestTransport(options)).watch({})[Symbol.asyncIterator]();
  expect(await messages.next()).toMatchObject({ done: true });
  expect(server.seen[0]?.header).not.toHaveProperty("connect-timeout-ms");
});

async function* once(parent: string) {
  yield create(WatchBooksRequestSchema, { parent });
}

test("a call whose signal is aborted fails with the signal's reason", async () => {
  await using server = await startRestServer((response, { line }) => {
    if (line.includes("shelves/1/books:watch"))
      response.writeHead(200, { "content-type": "application/x-ndjson" }).write("{}\n");
  });
  const messages = { write: {}, read: {}, registry: undefined };
  const errors = { readErrorBody: undefined, registry };
  const calls = new RestCalls({ baseUrl: server.baseUrl, fetch, messages, errors, readMaxBytes: 1_000 });
  const controller = new AbortController();
  const callOf = (desc: DescMethod) => {
    const { signal } = controller;
    return { method: new RestMethod(desc, messages), header: new Headers(), signal, timeoutMs: undefined };
  };
  const { watchBooks } = Catalog.method;
  const books = (await calls.stream(callOf(watchBooks), once("shelves/1"))).messages[Symbol.asyncIterator]();
  await books.next();
  const request = create(GetBookRequestSchema, { name: "shelves/1/books/2" });
  const unary = calls.unary(callOf(Catalog.method.getBook), request);
  const ends = [unary, calls.stream(callOf(watchBooks), once("shelves/2")), books.next()];
  await expect.poll(() => server.open()).toBe(3);
  controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
  for (const end of ends) await expect(end).rejects.toMatchObject({ code: Code.DeadlineExceeded });
});

test("an aborted signal cancels the call and its HTTP request", async () => {
  await using server = await startRestServer(() => undefined);
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  const controller = new AbortController();
  const call = client.query({}, { signal: controller.signal });
  await expect.poll(() => server.open()).toBe(1);
  controller.abort();
  await expect(within(call, "the end")).rejects.toMatchObject({ code: Code.Canceled });
  await expect.poll(() => server.open()).toBe(0);
});

test("google.api.HttpBody is sent as the raw body, with its content type", async () => {
  await using server = await startRestServer((response, { body }) => respondWith(response, 200, body, "image/x"));
  const client = createClient(FileService, createRestTransport({ baseUrl: server.baseUrl }));
  const file = await client.echo({ contentType: "text/csv", data: Buffer.from("a,b") });
  expect([file.contentType, Buffer.from(file.data).toString()]).toEqual(["image/x", "a,b"]);
  await client.putFile({ name: "n", file: { data: Buffer.from("x") } }).catch(() => undefined);
  const echo = { line: "POST /echo", header: { "content-type": "text/csv" }, body: "a,b" };
  expect(server.seen).toMatchObject([echo, { line: "PUT /files/n", body: "x" }]);
  expect(server.seen[1]?.header).not.toHaveProperty("content-type");
});

test.each(
  // oxfmt-ignore
  [
    { name: "that is not set", file: undefined,
      want: "file: must be set, because it is the raw body of the request" },
    { name: "with an invalid content type", file: { contentType: "a\r\nb: c" },
      want: "file.content_type: must be a media type such as image/png" },
    { name: "with extensions", file: { extensions: [{}] },
      want: "file.extensions: must be empty, because a raw body cannot contain extensions" },
  ],
)("google.api.HttpBody $name is refused", async ({ file, want }) => {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const client = createClient(FileService, createRestTransport({ baseUrl: server.baseUrl }));
  const call = client.putFile({ name: "n", ...(file && { file }) });
  await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage: expect.stringContaining(want) });
  expect(server.seen).toEqual([]);
});
