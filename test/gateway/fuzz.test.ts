import { create, fromJson, type JsonValue, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Color, EchoSchema, SinkSchema } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import type { HttpAnswer, HttpRequest } from "../support/carriers/exchange.ts";
import { type Http1Connection, openHttp1 } from "../support/carriers/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../support/carriers/http2-connection.ts";
import { kitchenSinkRegistry, startKitchenSink, type TestGateway } from "../support/gateway/kitchen-sink.ts";
import { anyRequest, mildBindings, typedRequest } from "../support/gateway/rest-arbitrary.ts";
import { toRestRequest } from "../support/gateway/rest-request.ts";
import { numRunsOf } from "../support/test-seed.ts";

const requestsPerProperty = numRunsOf(100);

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
      fc.asyncProperty(anyRequest, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });

  test("whatever value a field is given", async () => {
    await fc.assert(
      fc.asyncProperty(typedRequest, async (request) => expectMildAnswer(request, await http2.exchange(request))),
      { numRuns: requestsPerProperty },
    );
  });

  test("over HTTP/1.1", async () => {
    using http1 = new Http1Client();
    const noSpace = anyRequest.filter((request) => !/[ \t]/.test(request.path));
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
    const binding = mildBindings.find(({ pattern }) => `${pattern.httpMethod} ${pattern.pathTemplate}` === request);
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
      { numRuns: requestsPerProperty / 4 },
    );
  });
});
