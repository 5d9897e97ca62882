import { create, type DescMethodUnary, type Message, type MessageInitShape, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createRestTransport, type RestTransportOptions } from "../src/index.ts";
import { writeQuery } from "../src/request-query.ts";
import { createUrlValues } from "../src/url-values.ts";
import { KitchenSink, SinkSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySchema } from "../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { Catalog } from "../../testing/src/gen/catalog/v1/catalog_pb.ts";
import { kitchenSinkRegistry } from "../../testing/src/gateway/kitchen-sink.ts";
import { respondWith, startRestServer } from "../../testing/src/gateway/rest-server.ts";

type Sink = MessageInitShape<typeof SinkSchema>;

async function requestOf(method: DescMethodUnary, input: Message, path = "", jsonOptions = {}) {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const transport = createRestTransport({ baseUrl: server.baseUrl + path, jsonOptions });
  const error: unknown = await transport.unary(method, undefined, undefined, undefined, input).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { sent: server.seen.map(({ line, body }) => (body === "" ? line : `${line} ${body}`)), error };
}

const { types, query, replace, update, segments, matchOne, matchRest, plain, close, custom, any, root, remove } =
  KitchenSink.method;
type Row = readonly [name: string, method: DescMethodUnary, sink: Sink, want: string];

// oxfmt-ignore
const requests: readonly Row[] = [
  ["a path variable", types, { fInt64: 9_007_199_254_740_993n }, "GET /v1/int64/9007199254740993"],
  ["a double in the path", types, { fDouble: -29e4 }, "GET /v1/double/-290000"],
  ["an explicit zero in the path", types, { maybeInt64: 0n }, "GET /v1/maybe/0"],
  ["several matching bindings", types, { fBool: true, maybeInt64: 1n }, "GET /v1/bool/true?maybeInt64=1"],
  ["bytes as base64url", types, { fBytes: Buffer.from("fbefbefffffffb", "hex") }, "GET /v1/bytes/----____-w%3D%3D"],
  ["an enum", types, { fEnum: 2 }, "GET /v1/enum/COLOR_GREEN"],
  ["a timestamp", types, { time: { seconds: 1n, nanos: 5000 } }, "GET /v1/time/1970-01-01T00%3A00%3A01.000005Z"],
  ["a slash in one segment", types, { fString: "group/project" }, "GET /v1/string/group%2Fproject"],
  ["reserved characters", types, { fString: "a b?c#d&e'(!)*é~" },
    "GET /v1/string/a%20b%3Fc%23d%26e%27%28%21%29%2A%C3%A9~"],
  ["an escaped percent sign", types, { fString: "%2F" }, "GET /v1/string/%252F"],
  ["a path variable with two wildcards", segments, { fString: "shelves/1/books/a b" }, "GET /v1/shelves/1/books/a%20b"],
  ["a value for a ** wildcard", segments, { fString: "a/b/c" }, "GET /v1/files/a/b/c"],
  ["a nested field", segments, { nested: { text: "trees/x/y" } }, "GET /v1/trees/x/y"],
  ["two variables", segments, { fString: "only", nested: { text: "x" } }, "GET /v1/files/only?nested.text=x"],
  ["a colon in the path", segments, { fString: ":x" }, "GET /v1/files/%3Ax"],
  ["a value that looks like a custom verb", plain, { fString: "x:peek" }, "GET /v1/archive/x%3Apeek"],
  ["a value that looks like a custom verb after decoding", plain, { fString: "x/y:peek" },
    "GET /v1/archive/x/y%3Apeek"],
  ["an implicit zero in the path", remove, {}, "DELETE /v1/sinks/0"],
  ["a custom verb", close, { fString: "door" }, "POST /v1/verbs/door:close {}"],
  ["a colon before a verb", close, { fString: "a:b" }, "POST /v1/verbs/a%3Ab:close {}"],
  ["a custom HTTP method", custom, { fString: "x" }, "PROPFIND /v1/custom/x"],
  ["the HTTP method * in its rule", any, { fString: "x" }, "GET /v1/any/x"],
  ["the path / in its rule", root, {}, "GET /"],
  ["a repeated field", query, { ids: [1n, 2n], tags: ["", "a&b"] }, "GET /v1/query?ids=1&ids=2&tags=&tags=a%26b"],
  ["repeated enums, bytes, times and wrappers", query,
    { colors: [1, 2], blobs: [Buffer.from([255])], times: [{ seconds: 0n }], words: [{ value: "w" }] },
    "GET /v1/query?colors=COLOR_RED&colors=COLOR_GREEN&blobs=_w%3D%3D&times=1970-01-01T00%3A00%3A00Z&words=w"],
  ["nested fields", query, { nested: { text: "t", inner: { number: 5n, tags: ["x", "y"] } } },
    "GET /v1/query?nested.text=t&nested.inner.number=5&nested.inner.tags=x&nested.inner.tags=y"],
  ["fields with presence", query, { maybeBool: false, maybeString: "", maybeEnum: 0 },
    "GET /v1/query?maybeString=&maybeBool=false&maybeEnum=COLOR_UNSPECIFIED"],
  ["wrappers of zero values", query, { wInt64: 0n, wString: "" }, "GET /v1/query?wInt64=0&wString="],
  ["a field mask", query, { mask: { paths: ["display_name", "a.b_c"] } }, "GET /v1/query?mask=displayName%2Ca.bC"],
  ["a member of a oneof in the query", query, { choice: { case: "choiceNested", value: { text: "x" } } },
    "GET /v1/query?choiceNested.text=x"],
  ["a null value", query, { choice: { case: "choiceNull", value: 0 } }, "GET /v1/query?choiceNull=NULL_VALUE"],
  ["a custom JSON name", query, { oddName: "x" }, "GET /v1/query?customName=x"],
  ["path fields left out of the body", replace, { fInt64: 7n, fString: "x", labels: { a: "b" } },
    'PUT /v1/sinks/7 {"fString":"x","labels":{"a":"b"}}'],
  ["a nested path field left out of the body", replace, { nested: { text: "n", number: 3n } },
    'PUT /v1/nested/n/sinks {"nested":{"number":"3"}}'],
  ["a member of a oneof in the path", replace, { choice: { case: "choiceText", value: "c" }, fBool: true },
    'PUT /v1/choices/c {"fBool":true}'],
  ["one field in the body and others in the query", update, { nested: { text: "n", number: 3n }, fBool: true },
    'PATCH /v1/nested/n?fBool=true {"number":"3"}'],
  ["a list as the body", update, { tags: ["a", "b"] }, 'PATCH /v1/body/tags ["a","b"]'],
  ["an unset field as the body", update, { fString: "x" }, "PATCH /v1/children/x"],
  ["no body in its rule", remove, { fInt64: 5n }, "DELETE /v1/sinks/5"],
];

test.each(requests)("a message with %s is sent as its HTTP rule defines", async (_, method, sink, want) => {
  const { sent, error } = await requestOf(method, create(SinkSchema, sink), "/api/");
  expect([sent, error]).toEqual([[want.replace(" /", " /api/")], undefined]);
});

// oxfmt-ignore
const refusals: readonly Row[] = [
  ["an unset path variable", matchRest, {}, "f_string: must be set and not empty"],
  ["a message that no binding accepts", matchOne, { nested: { text: "" } }, "f_string: must be set and not empty"],
  ...[".", "..", "a/../b", "a/..", "./a", "a//b", "/a", "a/"].flatMap((text): readonly Row[] => {
    const bad = text.split("/").find((piece) => piece === "" || piece === "." || piece === "..");
    const want = `f_string: must not contain the path segment "${bad}"`;
    return [
      [`${text} in several segments`, matchRest, { fString: text }, want],
      [`${text} in one segment`, any, { fString: text }, want],
    ];
  }),
  ...["a\\..\\b", "..\\b", "a/b\\."].map((text): Row => {
    const want = expect.stringMatching(/^f_string: must not contain the path segment "\.{1,2}"$/);
    return [`${text}, whose backslashes may be slashes`, any, { fString: text }, want];
  }),
  ["a lone surrogate in a path", any, { fString: "a\ud800" },
    "f_string: has a lone surrogate, which UTF-8 cannot encode"],
  ["a lone surrogate in a query", query, { tags: ["\udfff"] }, "tags: has a lone surrogate, which UTF-8 cannot encode"],
  ["a lone surrogate in a body", KitchenSink.method.create, { labels: { a: "\ud800" } },
    "a string has a lone surrogate, which UTF-8 cannot encode"],
  ["a value that is another RPC's path", matchRest, { fString: "me" },
    "f_string: the path /v1/match/me could also match GET /v1/match/me"],
  ["a map in a query", query, { labels: { a: "b" } }, "labels: maps cannot be sent in a query"],
  ["a list of messages in a query", query, { nesteds: [{ text: "a" }] },
    "nesteds: repeated messages cannot be sent in a query"],
  ["an empty message in a query", query, { nested: { inner: {} } },
    "nested.inner: empty messages cannot be sent in a query"],
  ["a google.protobuf.Empty in a query", query, { empty: {} }, "empty: empty messages cannot be sent in a query"],
  ["a Struct in a query", query, { struct: { a: 1 } }, "struct: google.protobuf.Struct cannot be sent in a query"],
  ["a Value in a query", query, { value: { kind: { case: "nullValue", value: 0 } } },
    "value: google.protobuf.Value cannot be sent in a query"],
  ["an Any in a query", query, { any: {} }, "any: google.protobuf.Any cannot be sent in a query"],
  ["a number out of range", query, { fInt32: 2 ** 31 }, 'f_int32: "2147483648" is not an int32'],
  ["an integer with a fraction", query, { fInt32: 1.5 }, 'f_int32: "1.5" is not an int32'],
  ["a time out of range", query, { time: { seconds: 10n ** 12n } }, expect.stringMatching(/^time: /)],
];

test.each(refusals)("the client refuses %s with an error, and sends no request", async (_, method, sink, want) => {
  const { sent, error } = await requestOf(method, create(SinkSchema, sink));
  expect(sent).toEqual([]);
  if (!(error instanceof ConnectError)) throw error;
  expect(error.code).toBe(Code.InvalidArgument);
  const prefix = `cannot send this message to kitchensink.v1.KitchenSink.${method.name}: `;
  expect([error.rawMessage.slice(0, prefix.length), error.rawMessage.slice(prefix.length)]).toEqual([prefix, want]);
});

describe("resource names (AIP-122, AIP-131 to AIP-136)", () => {
  const { listBooks, batchGetBooks, getBook, createBook, updateBook, deleteBook, lendBook } = Catalog.method;
  const book = "shelves/1/books/2";
  test.each<{ readonly method: DescMethodUnary; readonly input: Message; readonly want: string }>(
    // oxfmt-ignore
    [
      { method: listBooks, input: create(listBooks.input, { parent: "shelves/1", pageSize: 2, pageToken: "a=b" }),
        want: "GET /v1/shelves/1/books?pageSize=2&pageToken=a%3Db" },
      { method: batchGetBooks, input: create(batchGetBooks.input, { parent: "shelves/1", names: [book] }),
        want: "GET /v1/shelves/1/books:batchGet?names=shelves%2F1%2Fbooks%2F2" },
      { method: getBook, input: create(getBook.input, { name: "shelves/1/books/ü" }),
        want: "GET /v1/shelves/1/books/%C3%BC" },
      { method: createBook, input: create(createBook.input, { parent: "shelves/1", bookId: "b", book: { title: "T" } }),
        want: 'POST /v1/shelves/1/books?bookId=b {"title":"T"}' },
      { method: updateBook,
        input: create(updateBook.input, { book: { name: book, title: "U" }, updateMask: { paths: ["title"] } }),
        want: 'PATCH /v1/shelves/1/books/2?updateMask=title {"title":"U"}' },
      { method: deleteBook, input: create(deleteBook.input, { name: book }), want: "DELETE /v1/shelves/1/books/2" },
      { method: lendBook, input: create(lendBook.input, { name: book, reader: "me" }),
        want: 'POST /v1/shelves/1/books/2:lend {"reader":"me"}' },
    ],
  )("$method.name is sent as $want to the server", async ({ method, input, want }) => {
    expect(await requestOf(method, input)).toEqual({ sent: [want], error: undefined });
  });

  test.each(["shelves/1", "shelves/1/books", "shelves/1/books/2/pages", "books/1/books/2", "shelves/1/books/", "2"])(
    'the name "%s" is refused for a book',
    async (name) => {
      const { sent, error } = await requestOf(Catalog.method.getBook, create(Catalog.method.getBook.input, { name }));
      const want = { code: Code.InvalidArgument, rawMessage: expect.stringContaining("name: ") };
      expect([sent, error]).toMatchObject([[], want]);
    },
  );
});

test.each(["/", "//", "/api/", "/api//"])(
  "a base URL that ends with the path %s precedes the path once",
  async (path) => {
    const { sent } = await requestOf(root, create(SinkSchema), path);
    const { sent: others } = await requestOf(remove, create(SinkSchema, { fInt64: 5n }), path);
    const prefix = path.replace(/\/+$/, "");
    expect([sent, others]).toEqual([[`GET ${prefix}/`], [`DELETE ${prefix}/v1/sinks/5`]]);
  },
);

test("a body is written with the transport's jsonOptions", async () => {
  const options = { useProtoFieldName: true, enumAsInteger: true };
  const { sent } = await requestOf(replace, create(SinkSchema, { fInt64: 7n, fEnum: 1 }), "", options);
  expect(sent).toEqual(['PUT /v1/sinks/7 {"f_enum":1}']);
});

test.each([{ recursionLimit: 1 }, { alwaysEmitImplicit: true }])("the jsonOptions %j are refused", (jsonOptions) => {
  const name = Object.keys(jsonOptions)[0];
  expect(() => createRestTransport({ baseUrl: "https://a.example", jsonOptions })).toThrow(
    `would ignore the option "${name}"`,
  );
});

test("an extension in the registry is refused in a query", () => {
  const legacy = create(LegacySchema, { name: "n" });
  legacy.$unknown = [{ no: 100, wireType: 2, data: Uint8Array.of(1, 0x61) }];
  const write = (registry: Registry | undefined) =>
    writeQuery(LegacySchema, legacy, new Map(), { texts: createUrlValues({}), useProtoFieldName: false, registry });
  expect(write(undefined)).toBe("name=n");
  expect(() => write(kitchenSinkRegistry)).toThrow("kitchensink.v1.Legacy: extensions cannot be sent in a query");
});

/** Like a browser's fetch, throws if it is called as a method. */
function windowFetch(this: unknown, ...request: Parameters<typeof fetch>): Promise<Response> {
  return this === undefined ? fetch(...request) : Promise.reject(new TypeError("Illegal invocation"));
}

test("onUnbound determines whether an RPC without a rule fails or uses Connect", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, { choice: {} }));
  const { baseUrl } = server;
  const call = (onUnbound: "fail" | "connect") =>
    createClient(Shelves, createRestTransport({ baseUrl, onUnbound, fetch: windowFetch })).chooseShelf({
      shelf: { theme: "x" },
    });
  await expect(call("fail")).rejects.toMatchObject({ code: Code.Unimplemented });
  expect(server.seen).toEqual([]);
  await call("connect");
  const line = "POST /kitchensink.v1.Shelves/ChooseShelf";
  expect(server.seen).toMatchObject([{ line, body: '{"shelf":{"theme":"x"}}' }]);
});

const namesProgram: Interceptor = (next) => async (request) => {
  request.header.set("x-by", "program");
  return await next(request);
};

test("a Connect call uses the options of the REST transport", async () => {
  await using server = await startRestServer((response, { body }) => {
    if (body.includes("moved")) response.writeHead(307, { location: "/elsewhere" }).end();
    else if (!body.includes("late")) respondWith(response, 200, { choice: {}, more: "x".repeat(1000) });
  });
  const options = { baseUrl: server.baseUrl, onUnbound: "connect", interceptors: [namesProgram] } as const;
  const errorOf = (theme: string, more: Partial<RestTransportOptions> = {}) =>
    createClient(Shelves, createRestTransport({ ...options, ...more })).chooseShelf({ shelf: { theme } });
  await expect(errorOf("moved")).rejects.toMatchObject({ code: Code.Unknown });
  await expect(errorOf("large", { readMaxBytes: 1000 })).rejects.toMatchObject({ code: Code.ResourceExhausted });
  const jsonOptions = { ignoreUnknownFields: false };
  await expect(errorOf("strict", { jsonOptions })).rejects.toMatchObject({ code: Code.InvalidArgument });
  expect(server.seen.at(-1)?.body).toBe('{"shelf":{"theme":"strict"}}');
  await expect(errorOf("late", { defaultTimeoutMs: 200 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  await expect.poll(() => server.open()).toBe(0);
  expect(server.seen.map(({ header }) => header["x-by"])).toEqual(Array(4).fill("program"));
});

test("the caller's Accept is sent, but not its Content-Type without a body", async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  await client.query({}, { headers: { accept: "application/x", "content-type": "text/x" } });
  expect(server.seen).toMatchObject([{ header: { accept: "application/x" } }]);
  expect(server.seen[0]?.header).not.toHaveProperty("content-type");
});

test.each(
  // oxfmt-ignore
  ["connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
)("the caller cannot set the header field %s of a request", async (name) => {
  await using server = await startRestServer((response) => respondWith(response, 200, {}));
  const client = createClient(KitchenSink, createRestTransport({ baseUrl: server.baseUrl }));
  await client.create({ fBool: true }, { headers: { [name]: "7", "x-a": "1" } });
  expect(server.seen).toMatchObject([{ body: '{"fBool":true}', header: { "x-a": "1" } }]);
  expect(server.seen[0]?.header[name]).not.toBe("7");
});

test.each(
  // oxfmt-ignore
  [
    "ftp://host", "http://user@host", "http://:secret@host", "http://host/?a=b", "http://host/?", "http://host/api/#",
    "http://host/#a", "nothing",
  ],
)('the base URL "%s" is refused', (baseUrl) => expect(() => createRestTransport({ baseUrl })).toThrow(TypeError));
