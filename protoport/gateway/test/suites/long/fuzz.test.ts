import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileRestRoutes, type RestBinding } from "../../../src/protocols/rest/rules/index.ts";
import { KitchenSink, SinkSchema } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
// oxfmt-ignore
import { type Http1Connection, type Http2Connection, type HttpRequest, type HttpResponse, numRunsOf, openHttp1,
  openHttp2, startKitchenSink, type TestGateway, withoutMasks } from "@protoport/testing";

const mildBindings: readonly RestBinding[] = compileRestRoutes(KitchenSink.methods).bindings.filter(
  (binding) => binding.method !== KitchenSink.method.fail,
);

const oneOf = (words: string, ...more: readonly string[]): fc.Arbitrary<string> =>
  fc.constantFrom(...words.split(" "), ...more);

// Strings that have caused errors in parsers before.
const nasty = oneOf(
  "0 -0 007 9223372036854775808 1e400 NaN null true % %zz %ff %00 %2F %2e%2e .. . a:b :peek * ** {id} [0] __proto__ constructor " +
    "toString + & = ; ' \" \\ | ^ %F0%9F%8C%B1 %ED%A0%80 2024-02-30T00:00:00Z 1s QQ== COLOR_RED a.b.c f_string fString nested.text child.child.fInt64",
  "",
);
const piece = fc.oneof(
  nasty,
  fc.stringMatching(/^[!-~]{0,6}$/).map((text) => text.replaceAll(/[?#]/g, "")),
);
const literal = oneOf(
  "v1 query sinks int64 string files match me verbs archive:list nested bytes enum time choices body response any custom",
);
const path = fc
  .array(fc.oneof(literal, piece), { maxLength: 6 })
  .map((segments) => `/${["v1", ...segments].join("/")}`);
const query = fc
  .array(fc.tuple(piece, piece), { maxLength: 4 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join("&"));
const jsonToken = oneOf(
  '{ } [ ] : , null true 1 -1.5e3 "fInt64" "fString" "nested" "text" "ids" "labels" "any" "@type" "time" "value" "\\ud800" \u0000',
  " ",
);
const body: fc.Arbitrary<Uint8Array | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.uint8Array({ maxLength: 40 }),
  fc.array(jsonToken, { maxLength: 20 }).map((tokens) => encode(tokens.join(""))),
  fc.json().map(encode),
);
const jsonTypes = ["application/json", "application/json; charset=utf-8", 'application/json; charset="'];
const contentType = fc.constantFrom(...jsonTypes, "text/plain", "application/x+json", "");

/** Requests of any kind, most of them invalid. */
const anyRequest: fc.Arbitrary<HttpRequest> = fc
  .record({
    httpMethod: oneOf("GET POST PUT PATCH DELETE HEAD OPTIONS REPORT"),
    path: fc.tuple(path, query, fc.boolean()).map(([bare, asked, asks]) => (asks ? `${bare}?${asked}` : bare)),
    body,
    contentType,
  })
  .map((given) => ({
    httpMethod: given.httpMethod,
    path: given.path,
    header: [["content-type", given.contentType] as const],
    ...(given.body === undefined ? {} : { body: given.body }),
  }));

// Every kitchen sink field by both names, and its messages' fields, including well-known types.
const fieldNames = SinkSchema.fields.flatMap((field) => [
  field.name,
  field.jsonName,
  ...(field.message?.fields ?? []).map((inner) => `${field.jsonName}.${inner.jsonName}`),
]);
const fieldName = fc.constantFrom(...fieldNames);
// Values at their types' limits.
const edge = oneOf(
  "0 1 -1 7 2147483648 -2147483648 9223372036854775807 -9223372036854775808 18446744073709551615 true false 3.4028235e38 3.4028236e38 " +
    "-1e308 5e-324 1e-400 -0.0 NaN -Infinity 1.5 0.1 COLOR_RED 17 QQ -_8 AAAA a é 🌱 \u0000 \ufffd a,b foo_bar fooBar foo_1 foo1 foo__bar foo_ " +
    "fooBAR a.b_c a.B 0001-01-01T00:00:00Z 9999-12-31T23:59:59.999999999Z 2024-02-29T23:59:59.000000001+23:59 0001-01-01T00:00:00+00:01 " +
    "315576000000s -315576000000.0s -0.000000001s NULL_VALUE",
  "",
);
const typedQuery = fc
  .array(fc.tuple(fieldName, edge), { minLength: 1, maxLength: 3 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&"));
const typedJson = fc.oneof(
  edge.map((value) => JSON.stringify(value)),
  edge.filter((value) => /^-?[0-9]/.test(value)),
  oneOf(
    'null true {} [] [null] {"a":null} {"a":1} [{}] 1e400 [[1]] {"@type":"type.googleapis.com/kitchensink.v1.Nested","number":"1"}',
  ),
);
const typedBody = fc
  .array(fc.tuple(fieldName, typedJson), { minLength: 1, maxLength: 3 })
  .map((pairs) => encode(`{${pairs.map(([name, value]) => `"${name}":${value}`).join(",")}}`));
const typedHead = fc
  .tuple(
    fc.constantFrom(...mildBindings.filter(({ template }) => template.variables.length > 0)),
    fc.array(edge, { minLength: 9, maxLength: 9 }),
  )
  .map(([{ template, pattern }, values]) => {
    const segments = template.segments.map((segment, at) =>
      encodeURIComponent(segment.kind === "literal" ? segment.text : (values[at] ?? "")),
    );
    return { httpMethod: pattern.httpMethod === "*" ? "PUT" : pattern.httpMethod, path: `/${segments.join("/")}` };
  });

/** Requests that set a kitchen sink field to a value at a type's limits. */
const typedRequest: fc.Arbitrary<HttpRequest> = fc.oneof(
  typedQuery.map((text) => ({ httpMethod: "GET", path: `/v1/query?${text}`, header: [] })),
  typedBody.map((bytes) => ({ httpMethod: "POST", path: "/v1/sinks", header: [], body: bytes })),
  typedHead.map((head) => ({ ...head, header: [] })),
);

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const requestsPerProperty = numRunsOf(100);
let gateway: TestGateway;
let http2: Http2Connection;

beforeAll(async () => {
  gateway = await startKitchenSink({ interceptors: [withoutMasks] });
  http2 = await openHttp2(gateway.address);
});

afterAll(async () => {
  http2[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

// No request may cause a server error, except 501 for an unknown method, and every error must be in JSON.
function expectNoServerError(request: HttpRequest, response: HttpResponse): void {
  if (response.httpStatus !== 501) expect(response.httpStatus).toBeLessThan(500);
  expect(response.httpStatus).toBeGreaterThanOrEqual(200);
  if (request.httpMethod === "HEAD") return;
  const json: unknown = JSON.parse(response.body.toString("utf8"));
  if (response.httpStatus >= 300) expect(json).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
}

// Sends requests over one HTTP/1.1 connection until the server closes it.
class Http1Client {
  #connection: Http1Connection | undefined;

  async exchange(request: HttpRequest): Promise<HttpResponse> {
    this.#connection ??= await openHttp1(gateway.address);
    this.#connection.request(request);
    const response = await this.#connection.readResponse(request.httpMethod);
    if (response.header.some(([name, value]) => name === "connection" && value === "close")) this[Symbol.dispose]();
    return response;
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }
}

test("a random request never causes an internal error over HTTP/2", async () =>
  await fc.assert(
    fc.asyncProperty(anyRequest, async (request) => expectNoServerError(request, await http2.exchange(request))),
    { numRuns: requestsPerProperty },
  ));

test("a random request never causes an internal error with random field values", async () =>
  await fc.assert(
    fc.asyncProperty(typedRequest, async (request) => expectNoServerError(request, await http2.exchange(request))),
    { numRuns: requestsPerProperty },
  ));

test("a random request never causes an internal error over HTTP/1.1", async () => {
  using http1 = new Http1Client();
  const noSpace = anyRequest.filter((request) => !/[ \t]/.test(request.path));
  await fc.assert(
    fc.asyncProperty(noSpace, async (request) => expectNoServerError(request, await http1.exchange(request))),
    { numRuns: requestsPerProperty },
  );
});
