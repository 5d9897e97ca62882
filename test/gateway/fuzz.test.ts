import { create, fromJson, type JsonValue, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRestRouter } from "../../src/gateway/rest/index.ts";
import { Color, EchoSchema, KitchenSink, SinkSchema } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import type { HttpAnswer, HttpRequest } from "../support/exchange.ts";
import { type Http1Connection, openHttp1 } from "../support/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../support/http2-connection.ts";
import { kitchenSinkRegistry, startKitchenSink, type TestGateway } from "../support/kitchen-sink.ts";
import { toRestRequest } from "../support/rest-request.ts";

// Bounded, so that the whole of `npm test` stays under a minute.
const requestsPerProperty = 1200;

let gateway: TestGateway;
let http2: Http2Connection;

beforeAll(async () => {
  gateway = await startKitchenSink();
  http2 = await openHttp2(gateway.address);
});

afterAll(async () => {
  http2[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

const router = createRestRouter(KitchenSink.methods);
// Every binding but those of the RPC that fails when it is asked to.
const bindings = router.bindings.filter((binding) => binding.method !== KitchenSink.method.fail);

// Text that has gone wrong somewhere before.
const nasty = fc.constantFrom(
  "",
  "0",
  "-0",
  "007",
  "9223372036854775808",
  "1e400",
  "NaN",
  "null",
  "true",
  "%",
  "%zz",
  "%ff",
  "%00",
  "%2F",
  "%2e%2e",
  "..",
  ".",
  "a:b",
  ":peek",
  "*",
  "**",
  "{id}",
  "[0]",
  "__proto__",
  "constructor",
  "toString",
  "+",
  "&",
  "=",
  ";",
  "'",
  '"',
  "\\",
  "|",
  "^",
  "%F0%9F%8C%B1",
  "%ED%A0%80",
  "2024-02-30T00:00:00Z",
  "1s",
  "QQ==",
  "COLOR_RED",
  "a.b.c",
  "f_string",
  "fString",
  "nested.text",
  "child.child.fInt64",
);
const piece = fc.oneof(
  nasty,
  fc.stringMatching(/^[!-~]{0,6}$/).filter((text) => !text.includes("#")),
);
const literals = fc.constantFrom(
  "v1",
  "query",
  "sinks",
  "int64",
  "string",
  "files",
  "match",
  "me",
  "verbs",
  "archive:list",
  "nested",
  "bytes",
  "enum",
  "time",
  "choices",
  "body",
  "response",
  "any",
  "custom",
);
const pathOf = fc
  .array(fc.oneof(literals, piece), { maxLength: 6 })
  .map((segments) => `/${["v1", ...segments].join("/")}`);
const queryOf = fc
  .array(fc.tuple(piece, piece), { maxLength: 4 })
  .map((pairs) =>
    pairs.map(([name, value]) => `${name.replaceAll(/[?#]/g, "")}=${value.replaceAll(/[?#]/g, "")}`).join("&"),
  );
// Every field of the kitchen sink by both names, and fields inside of messages, the well-known ones too.
const fieldNames = SinkSchema.fields.flatMap((field) => [
  field.name,
  field.jsonName,
  ...(field.message?.fields ?? []).map((inner) => `${field.jsonName}.${inner.jsonName}`),
]);
// Values at the edges of their types.
const edge = fc.constantFrom(
  ...[
    "0",
    "1",
    "-1",
    "7",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "true",
    "false",
  ],
  ...[
    "3.4028235e38",
    "3.4028236e38",
    "-1e308",
    "5e-324",
    "1e-400",
    "-0.0",
    "NaN",
    "-Infinity",
    "1.5",
    "0.1",
    "COLOR_RED",
    "17",
    "-2147483648",
  ],
  ...[
    "QQ",
    "-_8",
    "AAAA",
    "",
    "a",
    "é",
    "🌱",
    "\u0000",
    "\ufffd",
    "a,b",
    "foo_bar",
    "fooBar",
    "foo_1",
    "foo1",
    "foo__bar",
    "foo_",
    "fooBAR",
    "a.b_c",
    "a.B",
  ],
  ...[
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2024-02-29T23:59:59.000000001+23:59",
    "0001-01-01T00:00:00+00:01",
    "315576000000s",
    "-315576000000.0s",
    "-0.000000001s",
    "NULL_VALUE",
  ],
);
const typedQuery = fc
  .array(fc.tuple(fc.constantFrom(...fieldNames), edge), { minLength: 1, maxLength: 3 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&"));
const typedJson = fc.oneof(
  edge.map((value) => JSON.stringify(value)),
  edge.filter((value) => /^-?[0-9]/.test(value)),
  fc.constantFrom(
    "null",
    "true",
    "{}",
    "[]",
    "[null]",
    '{"a":null}',
    '{"a":1}',
    "[{}]",
    "1e400",
    "[[1]]",
    '{"@type":"type.googleapis.com/kitchensink.v1.Nested","number":"1"}',
  ),
);
const typedBody = fc
  .array(fc.tuple(fc.constantFrom(...fieldNames), typedJson), { minLength: 1, maxLength: 3 })
  .map((pairs) => new TextEncoder().encode(`{${pairs.map(([name, value]) => `"${name}":${value}`).join(",")}}`));
const typedPath = fc
  .tuple(
    fc.constantFrom(...bindings.filter(({ template }) => template.variables.length > 0)),
    fc.array(edge, { minLength: 9, maxLength: 9 }),
  )
  .map(([{ template, pattern }, values]) => {
    const segments = template.segments.map((segment, at) =>
      encodeURIComponent(segment.kind === "literal" ? segment.text : (values[at] ?? "")),
    );
    return { httpMethod: pattern.httpMethod === "*" ? "PUT" : pattern.httpMethod, path: `/${segments.join("/")}` };
  });
const typedRequest: fc.Arbitrary<HttpRequest> = fc.oneof(
  typedQuery.map((query) => ({ httpMethod: "GET", path: `/v1/query?${query}`, header: [] })),
  typedBody.map((body) => ({ httpMethod: "POST", path: "/v1/sinks", header: [], body })),
  typedPath.map((head) => ({ ...head, header: [] })),
);

const jsonToken = fc.constantFrom(
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  "null",
  "true",
  "1",
  "-1.5e3",
  '"fInt64"',
  '"fString"',
  '"nested"',
  '"text"',
  '"ids"',
  '"labels"',
  '"any"',
  '"@type"',
  '"time"',
  '"value"',
  '"\\ud800"',
  " ",
  "\u0000",
);
const bodyOf: fc.Arbitrary<Uint8Array | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.uint8Array({ maxLength: 40 }),
  fc.array(jsonToken, { maxLength: 20 }).map((tokens) => new TextEncoder().encode(tokens.join(""))),
  fc.json().map((text) => new TextEncoder().encode(text)),
);
const contentTypeOf = fc.constantFrom(
  "application/json",
  "application/json; charset=utf-8",
  "text/plain",
  "application/x+json",
  "",
  'application/json; charset="',
);
const requestOf: fc.Arbitrary<HttpRequest> = fc
  .record({
    httpMethod: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "REPORT"),
    path: fc.tuple(pathOf, queryOf, fc.boolean()).map(([path, query, asked]) => (asked ? `${path}?${query}` : path)),
    body: bodyOf,
    contentType: contentTypeOf,
  })
  .map(({ httpMethod, path, body, contentType }) => ({
    httpMethod,
    path,
    header: [["content-type", contentType] as const],
    ...(body === undefined ? {} : { body }),
  }));

// What every answer is, whatever was asked: the client's fault at worst, and told in JSON.
function expectMildAnswer(request: HttpRequest, answer: HttpAnswer): void {
  expect(answer.httpStatus).toBeLessThan(500);
  expect(answer.httpStatus).toBeGreaterThanOrEqual(200);
  if (request.httpMethod === "HEAD") return;
  const json: unknown = JSON.parse(answer.body.toString("utf8"));
  if (answer.httpStatus >= 300) expect(json).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
}

// HTTP/1.1 with one connection for as long as the server keeps it.
class Http1Client {
  #connection: Http1Connection | undefined;

  async exchange(request: HttpRequest): Promise<HttpAnswer> {
    this.#connection ??= await openHttp1(gateway.address);
    this.#connection.request(request);
    const answer = await this.#connection.readAnswer(request.httpMethod);
    if (answer.header.some(([name, value]) => name === "connection" && value === "close")) this[Symbol.dispose]();
    return answer;
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }
}

describe("no request makes the gateway fail", () => {
  test("over HTTP/2", async () => {
    await fc.assert(
      fc.asyncProperty(requestOf, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });

  test("whatever value a field is given", async () => {
    await fc.assert(
      fc.asyncProperty(typedRequest, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty * 3 },
    );
  });

  test("over HTTP/1.1", async () => {
    using http1 = new Http1Client();
    const noSpace = requestOf.filter((request) => !/[ \t]/.test(request.path));
    await fc.assert(
      fc.asyncProperty(noSpace, async (request) => expectMildAnswer(request, await http1.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });
});

type SinkInit = MessageInitShape<typeof SinkSchema>;

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
// What both a query and a body can carry.
const fieldsOf: fc.Arbitrary<SinkInit> = fc.record(
  {
    fInt64: int64,
    fUint64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fInt32: fc.integer(),
    fDouble: fc.double().map((value) => (value === 0 ? 0 : value)),
    fBool: fc.boolean(),
    fString: text,
    fBytes: fc.uint8Array({ maxLength: 9 }).map((bytes) => new Uint8Array(bytes)),
    fEnum: fc.constantFrom(Color.UNSPECIFIED, Color.RED, Color.GREEN),
    maybeInt64: int64,
    maybeString: text,
    ids: fc.array(int64, { maxLength: 4 }),
    tags: fc.array(text, { maxLength: 4 }),
    oddName: text,
    nested: fc.record({ text: text.filter((value) => value !== ""), number: int64 }),
    wInt64: int64,
    wString: text,
    choice: fc.oneof(
      text.map((value) => ({ case: "choiceText" as const, value })),
      int64.map((value) => ({ case: "choiceNumber" as const, value })),
    ),
    time: fc.record({ seconds: fc.bigInt({ min: -62135596800n, max: 253402300799n }), nanos: fc.nat(999_999_999) }),
    duration: fc.record({ seconds: fc.bigInt({ min: 0n, max: 315575999999n }), nanos: fc.nat(999_999_999) }),
  },
  { requiredKeys: [] },
);
// A path variable is never empty, and never "." or "..": those are other paths.
const segmentText = text.filter((value) => value !== "" && value !== "." && value !== "..");

const carriers: readonly { readonly request: string; readonly init: fc.Arbitrary<SinkInit> }[] = [
  { request: "GET /v1/query", init: fieldsOf },
  { request: "POST /v1/sinks", init: fieldsOf },
  {
    request: "PUT /v1/sinks/{f_int64}",
    init: fc.tuple(fieldsOf, int64).map(([fields, fInt64]) => Object.assign(fields, { fInt64 })),
  },
  {
    request: "GET /v1/string/{f_string}",
    init: fc.tuple(fieldsOf, segmentText).map(([fields, fString]) => Object.assign(fields, { fString })),
  },
  {
    request: "GET /v1/files/{f_string=**}",
    // "%2F" is kept as it is sent, so a value that has it cannot be told from one that had a slash escaped.
    init: fc
      .tuple(
        fieldsOf,
        fc.array(
          segmentText.filter((value) => !/[/%]/.test(value)),
          { minLength: 1, maxLength: 4 },
        ),
      )
      .map(([fields, segments]) => Object.assign(fields, { fString: segments.join("/") })),
  },
  {
    request: "PATCH /v1/nested/{nested.text}",
    init: fc
      .tuple(fieldsOf, segmentText, int64)
      .map(([fields, nestedText, number]) => Object.assign(fields, { nested: { text: nestedText, number } })),
  },
  {
    request: "PUT /v1/nested/{nested.text}/sinks",
    init: fc
      .tuple(fieldsOf, segmentText)
      .map(([fields, nestedText]) => Object.assign(fields, { nested: { text: nestedText } })),
  },
];

describe("a message that is written as a request is the message that the handler is given", () => {
  test.each(carriers)("$request", async ({ request, init }) => {
    const binding = bindings.find(({ pattern }) => `${pattern.httpMethod} ${pattern.pathTemplate}` === request);
    if (binding === undefined) throw new Error(`no binding ${request}`);
    await fc.assert(
      fc.asyncProperty(init, async (fields) => {
        const message = create(SinkSchema, fields);
        const answer = await http2.exchange(toRestRequest(binding, message));
        const body = answer.body.toString("utf8");
        expect(answer.httpStatus, body).toBe(200);
        const json: JsonValue = JSON.parse(body);
        const echo = fromJson(EchoSchema, json, { registry: kitchenSinkRegistry });
        // Bytes, because NaN equals nothing.
        expect(toBinary(SinkSchema, echo.sink ?? create(SinkSchema)), body).toEqual(toBinary(SinkSchema, message));
      }),
      { numRuns: 200 },
    );
  });
});
