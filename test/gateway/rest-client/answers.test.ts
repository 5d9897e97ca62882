import { create, createRegistry, type DescMethod, toBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack, EmptySchema } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createClient,
  createContextKey,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import type { ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Health } from "../../../src/gateway/health/index.ts";
import { createRestTransport, type RestTransportOptions } from "../../../src/gateway/rest-client/index.ts";
import { RestCalls } from "../../../src/gateway/rest-client/rest-calls.ts";
import { RestMethod } from "../../../src/gateway/rest-client/rest-method.ts";
import { Catalog, GetBookRequestSchema, WatchBooksRequestSchema } from "../../gen/catalog/v1/catalog_pb.ts";
import { FileService } from "../../gen/files/v1/files_pb.ts";
import { KitchenSink, NestedSchema } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { answerWith, startRestServer } from "../../support/gateway/rest-server.ts";
import { within } from "../../support/deadline.ts";

// Which message, or which error, is an answer: of servers of many kinds, and of bad ones.

const registry = createRegistry(NestedSchema);

/** Asks a server for a sink; returns the answer's message as it is, or the error. */
async function ask(answer: (response: ServerResponse) => void, options: Partial<RestTransportOptions> = {}) {
  await using server = await startRestServer(answer);
  const transport = createRestTransport({ baseUrl: server.baseUrl, registry, ...options });
  const call = createClient(KitchenSink, transport).query({});
  return await within(
    call.catch((error: unknown) => asError(error)),
    "an answer",
  );
}

function asError(value: unknown): ConnectError {
  if (value instanceof ConnectError) return value;
  throw value;
}

function answerNewer(response: ServerResponse): void {
  answerWith(response, 200, { rpc: "x", newer: [1] });
}

/** Reads a record of no known form. */
const readErrorRecord: RestTransportOptions["readErrorRecord"] = (body, httpStatus) =>
  typeof body === "object" && body !== null && "fault" in body
    ? new ConnectError(`${JSON.stringify(body["fault"])} ${httpStatus}`, Code.DataLoss)
    : undefined;

const nested = create(NestedSchema, { text: "t" });
const typeUrl = "type.googleapis.com/kitchensink.v1.Nested";
const detail = { type: "kitchensink.v1.Nested", value: toBinary(NestedSchema, nested) };

describe("error records", () => {
  test.each([
    {
      name: "google.rpc.Status",
      status: 404,
      body: { code: 5, message: "gone", details: [{ "@type": typeUrl, text: "t" }] },
      want: {
        code: Code.NotFound,
        rawMessage: "gone",
        details: [{ ...detail, debug: { "@type": typeUrl, text: "t" } }],
      },
    },
    {
      name: "the gateway's own, with the name of the code",
      status: 409,
      body: { code: 6, status: "ALREADY_EXISTS", message: "there", details: [] },
      want: { code: Code.AlreadyExists, rawMessage: "there" },
    },
    {
      name: "Google's APIs",
      status: 403,
      body: { error: { code: 403, message: "no", status: "PERMISSION_DENIED" } },
      want: { code: Code.PermissionDenied, rawMessage: "no" },
    },
    {
      name: "a stream of Google's APIs",
      status: 429,
      body: [{ error: { code: 429, message: "slowly", status: "RESOURCE_EXHAUSTED" } }],
      want: { code: Code.ResourceExhausted, rawMessage: "slowly" },
    },
    {
      name: "the plant store",
      status: 400,
      body: { error: 5, message: "no plant" },
      want: { code: Code.NotFound, rawMessage: "no plant" },
    },
    {
      name: "Connect",
      status: 412,
      body: {
        code: "failed_precondition",
        message: "not yet",
        details: [{ type: "kitchensink.v1.Nested", value: "CgF0" }],
      },
      want: { code: Code.FailedPrecondition, rawMessage: "not yet", details: [detail] },
    },
    {
      name: "problem+json",
      status: 422,
      type: "application/problem+json",
      body: { type: "about:blank", title: "Bad", status: 422, detail: "too bad" },
      want: { code: Code.InvalidArgument, rawMessage: "too bad" },
    },
    {
      name: "problem+json with its title alone",
      status: 422,
      type: "application/problem+json",
      body: { type: "about:blank", title: "Bad" },
      want: { code: Code.InvalidArgument, rawMessage: "Bad" },
    },
    {
      name: "a code that is an HTTP status",
      status: 404,
      body: { code: 404, message: "gone" },
      want: { code: Code.NotFound, rawMessage: "gone" },
    },
    {
      name: "a code of success",
      status: 503,
      body: { code: 0, message: "later" },
      want: { code: Code.Unavailable, rawMessage: "later" },
    },
    {
      name: "a detail of bytes whose type is not known",
      status: 400,
      body: { code: 3, details: [{ "@type": "x/unknown.Type", value: "CgF0" }] },
      want: { code: Code.InvalidArgument, details: [{ type: "unknown.Type", value: detail.value }] },
    },
    {
      name: "a detail whose URL has a path",
      status: 400,
      body: { code: 3, details: [{ "@type": "types.example/v1/kitchensink.v1.Nested", text: "t" }] },
      want: { code: Code.InvalidArgument, details: [detail] },
    },
    {
      name: "a detail of google/rpc/error_details.proto",
      status: 400,
      body: { code: 3, details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "STOP" }] },
      want: {
        code: Code.InvalidArgument,
        details: [{ type: "google.rpc.ErrorInfo", value: Uint8Array.from(Buffer.from("\n\x04STOP")) }],
      },
    },
    {
      name: "the same as bytes",
      status: 400,
      body: { code: 3, details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", value: "CgRTVE9Q" }] },
      want: {
        code: Code.InvalidArgument,
        details: [{ type: "google.rpc.ErrorInfo", value: Uint8Array.from(Buffer.from("\n\x04STOP")) }],
      },
    },
    {
      name: "a detail of JSON that looks like bytes",
      status: 400,
      body: { code: 3, details: [{ "@type": "x/google.protobuf.StringValue", value: "CgF0" }] },
      want: { code: Code.InvalidArgument, details: [] },
    },
    {
      name: "a detail that is not known",
      status: 400,
      body: { code: 3, message: "m", details: [{ "@type": "x/unknown.Type", a: 1 }, null, 7] },
      want: { code: Code.InvalidArgument, rawMessage: "m", details: [] },
    },
    {
      name: "JSON that is no record",
      status: 500,
      body: [1],
      want: { code: Code.Unknown, rawMessage: "HTTP status 500" },
    },
    {
      name: "JSON that is none",
      status: 429,
      body: "{",
      want: { code: Code.ResourceExhausted, rawMessage: "HTTP status 429" },
    },
    {
      name: "HTML, which is not shown",
      status: 502,
      type: "text/html",
      body: "<h1>secret</h1>",
      want: { code: Code.Unavailable, rawMessage: "HTTP status 502" },
    },
    {
      name: "a text whose type has JSON in a parameter",
      status: 502,
      type: "text/plain; of=a/json",
      body: { code: 5, message: "gone" },
      want: { code: Code.Unavailable, rawMessage: "HTTP status 502" },
    },
    {
      name: "a record of 100 KB",
      status: 401,
      body: { message: "x".repeat(100_000) },
      want: { code: Code.Unauthenticated, rawMessage: "HTTP status 401" },
    },
  ])("$name", async ({ status, body, type, want }) => {
    const error = await ask((response) => answerWith(response, status, body, type));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject(
      want.details === undefined
        ? want
        : { ...want, details: want.details.map((each) => expect.objectContaining(each)) },
    );
    if (want.details !== undefined) expect(asError(error).details).toHaveLength(want.details.length);
  });

  test.each<{ name: string; details: unknown }>([
    { name: "bytes that are not base64", details: [{ type: "kitchensink.v1.Nested", value: "!" }] },
    { name: "bytes of an unknown type that are not base64", details: [{ "@type": "x/unknown.Type", value: "!" }] },
    { name: "bytes of a known type that are not base64", details: [{ "@type": typeUrl, value: "!" }] },
    { name: "JSON of a wrong type", details: [{ "@type": typeUrl, text: 7 }] },
    { name: "JSON that is not an object of its type", details: [{ "@type": "x/google.protobuf.Duration", value: 7 }] },
    { name: "a URL without a type", details: [{ "@type": "type.googleapis.com/" }] },
    { name: "a URL that is not a string", details: [{ "@type": 7 }] },
    { name: "neither a type nor a URL", details: [{}, [], null, true, "text", 7] },
    { name: "no array", details: "text" },
    { name: "an object instead of an array", details: { "@type": typeUrl, text: "t" } },
  ])("details with $name leave the error of the server as it is", async ({ details }) => {
    const readable = { "@type": typeUrl, text: "t" };
    const given = Array.isArray(details) ? [...details, readable] : details;
    const header = { "content-type": "application/json", "x-why": "drought" };
    const error = asError(
      await ask((response) => {
        response.writeHead(404, header).end(JSON.stringify({ code: 9, message: "not yet", details: given }));
      }),
    );
    expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "not yet" });
    expect(error.metadata.get("x-why")).toBe("drought");
    expect(error.findDetails(NestedSchema)).toMatchObject(Array.isArray(details) ? [{ text: "t" }] : []);
  });

  test.each([
    [400, Code.InvalidArgument],
    [401, Code.Unauthenticated],
    [403, Code.PermissionDenied],
    [404, Code.NotFound],
    [405, Code.Unimplemented],
    [409, Code.Aborted],
    [418, Code.FailedPrecondition],
    [429, Code.ResourceExhausted],
    [499, Code.Canceled],
    [500, Code.Unknown],
    [501, Code.Unimplemented],
    [502, Code.Unavailable],
    [503, Code.Unavailable],
    [504, Code.DeadlineExceeded],
    [599, Code.Internal],
  ] as const)("HTTP status %i without a record is code %i", async (status, code) => {
    expect(await ask((response) => response.writeHead(status).end())).toMatchObject({ code });
  });

  test("a record that no other API has is read by the program", async () => {
    const own = await ask((response) => answerWith(response, 418, { fault: "tea" }), { readErrorRecord });
    expect(own).toMatchObject({ code: Code.DataLoss, rawMessage: '"tea" 418' });
    const other = await ask((response) => answerWith(response, 404, { code: 5, message: "gone" }), { readErrorRecord });
    expect(other).toMatchObject({ code: Code.NotFound, rawMessage: "gone" });
  });

  test("the header of an error is its metadata, which is not passed on to clients of the program", async () => {
    const error = await ask((response) => response.writeHead(503, { "retry-after": "7" }).end());
    expect(asError(error).metadata.get("retry-after")).toBe("7");
    expect(error).toMatchObject({ isWireError: true });
  });
});

test.each([0, -1])("a call with a time-out of %i ms has no deadline", async (timeoutMs) => {
  await using server = await startRestServer((response) => setImmediate(answerNewer, response));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  expect((await client.query({}, { timeoutMs })).rpc).toBe("x");
});

test.each([
  { timeoutMs: 2 ** 31, sent: "2147484S" },
  { timeoutMs: Number.POSITIVE_INFINITY, sent: "2147484S" },
])("a call with a time-out of $timeoutMs ms is not over at once", async ({ timeoutMs, sent }) => {
  await using server = await startRestServer((response) => setImmediate(answerNewer, response));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  expect((await client.query({}, { timeoutMs })).rpc).toBe("x");
  expect(server.seen).toMatchObject([{ header: { "grpc-timeout": sent } }]);
});

describe("bad servers", () => {
  const redirect = "the server redirects to https://elsewhere.example/, which is not followed";
  test.each([
    {
      name: "HTML",
      answer: (response: ServerResponse) => answerWith(response, 200, "<p>hello", "text/html"),
      want: { code: Code.Unknown, rawMessage: "the answer is text/html, not application/json" },
    },
    {
      name: "JSON that breaks off",
      answer: (response: ServerResponse) => answerWith(response, 200, '{"rpc":"x"'),
      want: { code: Code.Internal, rawMessage: expect.stringContaining("not a valid kitchensink.v1.Echo") },
    },
    {
      name: "JSON of another type",
      answer: (response: ServerResponse) => answerWith(response, 200, { rpc: 7 }),
      want: { code: Code.Internal, rawMessage: expect.stringContaining("rpc: ") },
    },
    {
      name: "a body that breaks off",
      answer: (response: ServerResponse) => {
        response.writeHead(200, { "content-length": 100, "content-type": "application/json" }).write('{"rpc":');
        setImmediate(() => response.destroy());
      },
      want: { code: Code.Unavailable, rawMessage: "the answer breaks off" },
    },
    {
      name: "nothing",
      answer: (response: ServerResponse) => response.destroy(),
      want: { code: Code.Unavailable, rawMessage: expect.stringContaining("the server gives no answer") },
    },
    {
      name: "204",
      answer: (response: ServerResponse) => response.writeHead(204).end(),
      want: { code: Code.Internal, rawMessage: "the answer, with HTTP status 204, has no body" },
    },
    {
      name: "200 without a body",
      answer: (response: ServerResponse) => response.writeHead(200).end(),
      want: { code: Code.Internal, rawMessage: "the answer, with HTTP status 200, has no body" },
    },
    {
      name: "an announcement of 100 MB",
      answer: (response: ServerResponse) => response.writeHead(200, { "content-length": 100_000_000 }).write("{"),
      want: { code: Code.ResourceExhausted },
    },
    {
      name: "a body without end",
      answer: (response: ServerResponse) => {
        response.writeHead(200);
        const more = (): void => {
          while (!response.destroyed && response.write(" ".repeat(65_536)));
        };
        response.on("drain", more);
        more();
      },
      want: { code: Code.ResourceExhausted, rawMessage: "the answer is larger than 4194304 bytes" },
    },
    ...[301, 302, 303, 307, 308].map((status) => ({
      name: `a redirect, ${status}`,
      answer: (response: ServerResponse) =>
        response.writeHead(status, { location: "https://elsewhere.example/" }).end(),
      want: { code: Code.Unknown, rawMessage: redirect },
    })),
    {
      name: "304",
      answer: (response: ServerResponse) => response.writeHead(304).end(),
      want: { code: Code.Unknown, rawMessage: "the server redirects, which is not followed" },
    },
  ])("$name", async ({ answer, want }) => {
    const error = await ask(answer);
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject(want);
  });

  test("a redirect, in a page, which is not told where it leads", async () => {
    const told = { ok: { value: false }, status: { value: 0 }, type: { value: "opaqueredirect" } };
    const hidden = Object.defineProperties(new Response(), told);
    expect(await ask(() => undefined, { fetch: async () => hidden })).toMatchObject({
      code: Code.Unknown,
      rawMessage: "the server redirects, which is not followed",
    });
  });

  test("no more than is allowed, of which as much is read", async () => {
    expect(await ask(answerNewer, { readMaxBytes: 23 })).toMatchObject({ rpc: "x" });
    expect(await ask(answerNewer, { readMaxBytes: 22 })).toMatchObject({ code: Code.ResourceExhausted });
  });

  test("a server that is not there", async () => {
    const server = await startRestServer(() => undefined);
    await server[Symbol.asyncDispose]();
    const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
    await expect(client.query({})).rejects.toMatchObject({ code: Code.Unavailable });
  });

  test("an int64 beyond 2^53 that comes as a number is exact", async () => {
    const answer = await ask((response) => answerWith(response, 200, '{"sink":{"fInt64":9007199254740993}}'));
    expect(answer).toMatchObject({ sink: { fInt64: 9_007_199_254_740_993n } });
  });

  test("fields of a newer server are ignored, or refused if the program says so", async () => {
    expect(await ask(answerNewer)).toMatchObject({ rpc: "x" });
    const strict = await ask(answerNewer, { jsonOptions: { ignoreUnknownFields: false } });
    expect(strict).toMatchObject({ code: Code.Internal, rawMessage: expect.stringContaining("newer") });
  });
});

test("an answer without fields needs no body", async () => {
  await using server = await startRestServer((response) => response.writeHead(204).end());
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  expect(await client.remove({ fInt64: 1n })).toEqual(create(EmptySchema));
});

test("a page of somebody else's is no answer, even if the message has no fields", async () => {
  await using server = await startRestServer((response) => answerWith(response, 200, "<p>Log in", "text/html"));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  await expect(client.remove({ fInt64: 1n })).rejects.toMatchObject({ code: Code.Unknown });
});

test("a field is the answer", async () => {
  await using server = await startRestServer((response) => answerWith(response, 200, { text: "t", number: "5" }));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  expect(await client.responseNested({})).toMatchObject({ nested: { text: "t", number: 5n }, fString: "" });
});

test("an Any holds the types of jsonOptions, where no others are given", async () => {
  await using server = await startRestServer((response, { body }) =>
    answerWith(response, 200, { sink: JSON.parse(body) }),
  );
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl, jsonOptions: { registry } }));
  const { sink } = await client.create({ any: anyPack(NestedSchema, nested) });
  expect(sink?.any && anyUnpack(sink.any, registry)).toEqual(nested);
});

test("header fields go both ways, and interceptors see the template and what the call was given", async () => {
  await using server = await startRestServer((response, { header }) => {
    response.setHeader("x-answer", String(header["x-request"]));
    answerWith(response, 200, {});
  });
  const seen: string[] = [];
  const note = createContextKey("nothing");
  const interceptor: Interceptor = (next) => async (request) => {
    seen.push(
      `${request.requestMethod} ${request.url.slice(server.baseUrl.length)} ${request.contextValues.get(note)}`,
    );
    request.header.set("x-request", "yes");
    return await next(request);
  };
  const interceptors = [interceptor];
  const transport = createRestTransport({ baseUrl: server.baseUrl, interceptors });
  // The transport has a list of its own.
  interceptors.pop();
  let answered: string | null = null;
  await createClient(KitchenSink, transport).any(
    { fString: "x" },
    {
      onHeader: (header) => (answered = header.get("x-answer")),
      contextValues: createContextValues().set(note, "noted"),
    },
  );
  expect([answered, seen]).toEqual(["yes", ["GET /v1/any/{f_string} noted"]]);
  expect(server.seen).toMatchObject([{ header: { accept: "application/json", "x-request": "yes" } }]);
  expect(server.seen[0]?.header).not.toHaveProperty("content-type");
});

test("a deadline is sent, and ends the call", async () => {
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
    { rpc, title: "after 60 seconds", options: {}, call: {}, code: Code.DeadlineExceeded },
    { rpc, title: "never with defaultTimeoutMs: 0", options: { defaultTimeoutMs: 0 }, call: {}, code: Code.Canceled },
    { rpc, title: "never with timeoutMs: 0", options: {}, call: { timeoutMs: 0 }, code: Code.Canceled },
  ]),
)("a call of $rpc that gets only interim responses ends $title", async ({ rpc, options, call, code }) => {
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

test("a deadline by Connect's protocol is one that a timer can have", async () => {
  await using server = await startRestServer((response) => answerWith(response, 200, {}));
  const transport = createRestTransport({ baseUrl: server.baseUrl, onUnbound: "connect" });
  await createClient(KitchenSink, transport).unbound({}, { timeoutMs: 2 ** 31 });
  expect(server.seen).toMatchObject([{ header: { "connect-timeout-ms": "2147483647" } }]);
});

test("a stream by Connect's protocol has no deadline with defaultTimeoutMs: 0", async () => {
  // An EndStreamResponse of Connect.
  const end = Buffer.from([2, 0, 0, 0, 2, ...Buffer.from("{}")]);
  await using server = await startRestServer((response) => answerWith(response, 200, end, "application/connect+json"));
  const options = { baseUrl: server.baseUrl, onUnbound: "connect", defaultTimeoutMs: 0 } as const;
  const messages = createClient(Health, createRestTransport(options)).watch({})[Symbol.asyncIterator]();
  expect(await messages.next()).toMatchObject({ done: true });
  expect(server.seen[0]?.header).not.toHaveProperty("connect-timeout-ms");
});

async function* once(parent: string) {
  yield create(WatchBooksRequestSchema, { parent });
}

test("a call that fails once its signal is aborted fails because of that, whatever version of Connect makes it", async () => {
  await using server = await startRestServer((response, { line }) => {
    if (line.includes("shelves/1/books:watch"))
      response.writeHead(200, { "content-type": "application/x-ndjson" }).write("{}\n");
  });
  const messages = { write: {}, read: {}, registry: undefined };
  const errors = { readErrorRecord: undefined, registry };
  const calls = new RestCalls({ baseUrl: server.baseUrl, fetch, messages, errors, readMaxBytes: 1_000 });
  const controller = new AbortController();
  const callOf = (desc: DescMethod) => {
    const { signal } = controller;
    return { method: new RestMethod(desc, messages), header: new Headers(), signal, timeoutMs: undefined };
  };
  const { watchBooks } = Catalog.method;
  const begun = await calls.stream(callOf(watchBooks), once("shelves/1"));
  const books = begun.messages[Symbol.asyncIterator]();
  await books.next();
  const ends = [
    calls.unary(callOf(Catalog.method.getBook), create(GetBookRequestSchema, { name: "shelves/1/books/2" })),
    calls.stream(callOf(watchBooks), once("shelves/2")),
    books.next(),
  ];
  await expect.poll(() => server.open()).toBe(3);
  controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
  for (const end of ends) await expect(end).rejects.toMatchObject({ code: Code.DeadlineExceeded });
});

test("a signal ends the call, and its request", async () => {
  await using server = await startRestServer(() => undefined);
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  const controller = new AbortController();
  const call = client.query({}, { signal: controller.signal });
  await expect.poll(() => server.open()).toBe(1);
  controller.abort();
  await expect(within(call, "the end")).rejects.toMatchObject({ code: Code.Canceled });
  await expect.poll(() => server.open()).toBe(0);
});

describe("google.api.HttpBody", () => {
  test("is sent as it is, with its content type, or none", async () => {
    await using server = await startRestServer((response, { body }) => answerWith(response, 200, body, "image/x"));
    const client = createClient(FileService, createRestTransport({ baseUrl: server.baseUrl }));
    const file = await client.echo({ contentType: "text/csv", data: Buffer.from("a,b") });
    expect([file.contentType, Buffer.from(file.data).toString()]).toEqual(["image/x", "a,b"]);
    await client.putFile({ name: "n", file: { data: Buffer.from("x") } }).catch(() => undefined);
    expect(server.seen).toMatchObject([
      { line: "POST /echo", header: { "content-type": "text/csv" }, body: "a,b" },
      { line: "PUT /files/n", body: "x" },
    ]);
    expect(server.seen[1]?.header).not.toHaveProperty("content-type");
  });

  test.each([
    { name: "that is not set", file: undefined, want: "file: is not set, which bytes cannot say" },
    { name: "whose type is none", file: { contentType: "a\r\nb: c" }, want: "file.content_type: is no media type" },
    { name: "with extensions", file: { extensions: [{}] }, want: "file.extensions: bytes have none" },
  ])("$name is refused", async ({ file, want }) => {
    await using server = await startRestServer((response) => answerWith(response, 200, {}));
    const client = createClient(FileService, createRestTransport({ baseUrl: server.baseUrl }));
    const call = client.putFile({ name: "n", ...(file && { file }) });
    await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage: expect.stringContaining(want) });
    expect(server.seen).toEqual([]);
  });
});
