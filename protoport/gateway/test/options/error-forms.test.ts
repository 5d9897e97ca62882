import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createRestTransport } from "../../../rest-client/src/index.ts";
import { BadRequestSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import type { FetchHandler, RestOptions } from "../../src/index.ts";
import { createOpenApi, type OpenApiSchema } from "../../src/openapi/index.ts";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";

/** A message that would change the JSON if it were inserted as text. */
const message = 'no "{code}"\n, {message} \\';
const details = [{ desc: BadRequestSchema, value: { fieldViolations: [{ field: "bed" }] } }];

const serve = (rest: RestOptions): FetchHandler =>
  serveByFetch(
    {
      getReading: ({ sensor }) => {
        if (sensor === "none") throw new ConnectError("no sensor", Code.NotFound);
        if (sensor === "s") throw new ConnectError(message, Code.NotFound, undefined, details);
        throw new ConnectError("wrong bed", Code.InvalidArgument, undefined, details);
      },
      async *watchReadings({ sensor }) {
        yield { sensor: "s0" };
        if (sensor === "broken") throw new ConnectError("no sensor", Code.NotFound);
        if (sensor === "s") throw new ConnectError(message, Code.NotFound);
      },
    },
    { rest },
  );

type Seen = { readonly httpStatus: number; readonly contentType: string | null; readonly text: string };

async function get(rest: RestOptions, path: string, accept = "*/*"): Promise<Seen> {
  const response = await serve(rest)(new Request(`http://a${path}`, { headers: { accept } }));
  const { status: httpStatus, headers } = response;
  return { httpStatus, contentType: headers.get("content-type"), text: await response.text() };
}

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean;
}

/** Returns where a value violates a schema by its type, its required members or its unknown members. */
function violationsOf(value: unknown, schema: Schema, path: string): string[] {
  const { type, properties = {}, required = [], items, additionalProperties } = schema;
  if (Array.isArray(value))
    return type === "array" ? value.flatMap((item, at) => violationsOf(item, items ?? {}, `${path}[${at}]`)) : [path];
  if (typeof value !== "object" || value === null)
    return (type === "integer" ? Number.isInteger(value) : type === typeof value) ? [] : [path];
  const members = Object.entries(value);
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${path}.${name}`);
  return members.reduce<string[]>((found, [name, member]) => {
    const inner = properties[name];
    if (inner !== undefined) return [...found, ...violationsOf(member, inner, `${path}.${name}`)];
    return additionalProperties === true ? found : [...found, `${path}.${name}`];
  }, missing);
}

const violations = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{ field: "bed" }] }];

// oxfmt-ignore
const forms = [
  { name: "status", rest: {}, contentType: "application/json",
    notFound: { code: 5, status: "NOT_FOUND", message: "no sensor", details: [] },
    invalid: { code: 3, status: "INVALID_ARGUMENT", message: "wrong bed", details: violations },
    noRoute: { code: 5, status: "NOT_FOUND", message: expect.any(String), details: [] },
    wrongMethod: { code: 12, status: "UNIMPLEMENTED", message: expect.any(String), details: [] } },
  { name: "google", rest: { errors: "google" }, contentType: "application/json",
    notFound: { error: { code: 404, message: "no sensor", status: "NOT_FOUND" } },
    invalid: { error: { code: 400, message: "wrong bed", status: "INVALID_ARGUMENT", details: violations } },
    noRoute: { error: { code: 404, message: expect.any(String), status: "NOT_FOUND" } },
    wrongMethod: { error: { code: 405, message: expect.any(String), status: "UNIMPLEMENTED" } } },
  { name: "problem", rest: { errors: "problem" }, contentType: "application/problem+json",
    notFound: { type: "about:blank", title: "Not Found", status: 404, detail: "no sensor", code: "NOT_FOUND" },
    invalid: { type: "about:blank", title: "Bad Request", status: 400, detail: "wrong bed", code: "INVALID_ARGUMENT",
      details: violations },
    noRoute: { type: "about:blank", title: "Not Found", status: 404, detail: expect.any(String), code: "NOT_FOUND" },
    wrongMethod: { type: "about:blank", title: "Method Not Allowed", status: 405, detail: expect.any(String),
      code: "UNIMPLEMENTED" } },
] as const;

describe.each(forms)("the error format $name", ({ rest, contentType, ...want }) => {
  test.each([
    { name: "an error of a handler", path: "/sensors/none/reading", httpStatus: 404, record: want.notFound },
    { name: "an error with details", path: "/sensors/x/reading", httpStatus: 400, record: want.invalid },
    { name: "an unknown path", path: "/nothing", httpStatus: 404, record: want.noRoute },
    { name: "a wrong method", path: "/beds/7:water", httpStatus: 405, record: want.wrongMethod },
  ])("is used for $name", async ({ path, httpStatus, record }) => {
    const response = await get(rest, path);
    expect(response).toMatchObject({ httpStatus, contentType });
    expect(JSON.parse(response.text)).toEqual(record);
  });

  test("is parsed by the REST client with code, message and details", async () => {
    const fetch = serve(rest);
    const transport = createRestTransport({ baseUrl: "http://a", fetch: (url, init) => fetch(new Request(url, init)) });
    const error: unknown = await createClient(GreenhouseService, transport)
      .getReading({ sensor: "x" })
      .catch((thrown: unknown) => thrown);
    if (!(error instanceof ConnectError)) throw new Error("there is no ConnectError");
    expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, "wrong bed"]);
    expect(error.findDetails(BadRequestSchema)).toMatchObject([{ fieldViolations: [{ field: "bed" }] }]);
  });

  test("matches its schema in the OpenAPI document", () => {
    const document = createOpenApi([GreenhouseService], { info: { title: "t", version: "1" }, rest });
    const responses = document.paths["/sensors/{sensor}/reading"]?.["get"]?.responses;
    const { schema } = responses?.["4XX"]?.content?.[contentType] ?? {};
    const name = JSON.stringify(schema?.["$ref"]).replace("#/components/schemas/", "").replaceAll('"', "");
    const described = document.components?.schemas?.[name];
    expect(described).toBeDefined();
    for (const record of [want.notFound, want.invalid]) expect(violationsOf(record, described ?? {}, "")).toEqual([]);
    expect(violationsOf({ other: 1 }, described ?? {}, "")).not.toEqual([]);
  });
});

describe("a failed stream", () => {
  const record = '{"code":5,"status":"NOT_FOUND","message":"no sensor","details":[]}';
  const google = '{"error":{"code":404,"message":"no sensor","status":"NOT_FOUND"}}';
  const problem = '{"type":"about:blank","title":"Not Found","status":404,"detail":"no sensor","code":"NOT_FOUND"}';
  const own: RestOptions = { errors: "google", errorRecord: () => ({ httpStatus: 400, body: { own: true } }) };

  test.each([
    { rest: {}, line: `{"@error":${record}}`, event: record },
    { rest: { errors: "google" as const }, line: google, event: google },
    { rest: { errors: "problem" as const }, line: `{"@error":${problem}}`, event: problem },
    { rest: own, line: '{"@error":{"own":true}}', event: '{"own":true}' },
  ])("ends with $line in NDJSON and in a JSON array", async ({ rest, line, event }) => {
    const path = "/sensors/broken/readings";
    expect((await get(rest, path)).text).toBe(`{"sensor":"s0"}\n${line}\n`);
    expect((await get(rest, path, "application/json")).text).toBe(`[{"sensor":"s0"},\n${line}]`);
    expect((await get(rest, path, "text/event-stream")).text).toBe(
      `retry: 3000\ndata: {"sensor":"s0"}\n\nevent: error\ndata: ${event}\n\n`,
    );
  });
});

test.each([
  { name: "is sent by default", rest: {}, sends: true },
  { name: "is omitted with endEvent: false", rest: { endEvent: false }, sends: false },
  { name: "is sent with problem details", rest: { errors: "problem" }, sends: true },
  { name: "is omitted with google errors", rest: { errors: "google" }, sends: false },
  { name: "is sent with google errors if endEvent is true", rest: { errors: "google", endEvent: true }, sends: true },
] as const)("the end event of Server-Sent Events $name", async ({ rest, sends }) => {
  const { text } = await get(rest, "/sensors/x/readings", "text/event-stream");
  expect(text).toBe(`retry: 3000\ndata: {"sensor":"s0"}\n\n${sends ? "event: end\ndata: {}\n\n" : ""}`);
});

test("an unknown error format is rejected at start", () =>
  expect(() => Reflect.apply(serve, undefined, [{ errors: "rfc7807" }])).toThrow(
    'rest.errors must be one of status, google, problem, got "rfc7807"',
  ));

// The template `rest.errorBody`.

const getAll = async (...request: Parameters<typeof get>): Promise<unknown[]> => Object.values(await get(...request));
const reading = "/sensors/s/reading";

test.each<{ name: string; errorBody: JsonObject; want: object }>(
  // oxfmt-ignore
  [
    { name: "every placeholder",
      errorBody: { a: "{code}", b: "{number}", c: "{message}", d: "{details}", e: "{httpStatus}" },
      want: { a: "NOT_FOUND", b: 5, c: message, d: violations, e: 404 } },
    { name: "nested objects and arrays", errorBody: { errors: [{ reason: "{code}" }, "{message}"] },
      want: { errors: [{ reason: "NOT_FOUND" }, message] } },
    { name: "other values", errorBody: { ok: false, none: null, count: 0, code: "code", ["__proto__"]: "x" },
      want: { ok: false, none: null, count: 0, code: "code", ["__proto__"]: "x" } },
  ],
)("errorBody with $name is the body of an error", async ({ errorBody, want }) => {
  const [status, type, text] = await getAll({ errorBody }, reading);
  expect([status, type, JSON.parse(String(text))]).toEqual([404, "application/json", want]);
});

const cyclic: JsonObject = {};
cyclic["a"] = cyclic;
let deep: JsonObject = {};
for (let level = 0; level < 20_000; level++) deep = { a: deep };

const errorBody: JsonObject = { error: { code: "{httpStatus}", text: "{message}" } };

test("errorBody is the body for an unknown path, next to a gateway with another template", async () => {
  const other = getAll({ errorBody: { reason: "{code}" } }, "/nothing");
  expect([await getAll({ errorBody }, "/nothing"), await other]).toEqual([
    [404, "application/json", expect.stringMatching(/^\{"error":\{"code":404,"text":"[^"]+"\}\}$/)],
    [404, "application/json", '{"reason":"NOT_FOUND"}'],
  ]);
});

test("errorBody is sent with the content type of the profile", async () => {
  const [, type, text] = await getAll({ errorBody: { reason: "{code}" }, profile: "a2a" }, reading);
  expect([type, text]).toEqual(["application/a2a+json", '{"reason":"NOT_FOUND"}']);
});

test("errorBody is sent instead of google.rpc.Status to clients that accept protobuf", async () => {
  const rest: RestOptions = { errorBody: { reason: "{code}" }, profile: "grpc-gateway" };
  const want = [404, "application/json", '{"reason":"NOT_FOUND"}'];
  expect(await getAll(rest, reading, "application/x-protobuf")).toEqual(want);
});

test.each([
  { accept: "application/x-ndjson", end: '{"@error":{"reason":"NOT_FOUND"}}\n' },
  { accept: "text/event-stream", end: 'event: error\ndata: {"reason":"NOT_FOUND"}\n\n' },
])("errorBody is the error at the end of a stream in $accept", async ({ accept, end }) => {
  const [status, , text] = await getAll({ errorBody: { reason: "{code}" } }, "/sensors/s/readings", accept);
  expect([status, text]).toEqual([200, expect.stringContaining(end)]);
});

test.each<[name: string, rest: object, problem: string]>(
  // oxfmt-ignore
  [
    ["an unknown placeholder", { errorBody: { error: { text: "{mesage}" } } },
      "rest.errorBody.error.text must be {code}, {number}, {message}, {details}, {httpStatus} or text without"],
    ["a placeholder within text", { errorBody: { e: ["at {code}"] } }, "rest.errorBody.e.0 must be"],
    ["a placeholder as a name", { errorBody: { "{code}": 1 } }, 'names without braces, got "{code}"'],
    ["a string", { errorBody: "{message}" }, "rest.errorBody must be an object"],
    ["an array", { errorBody: ["{message}"] }, "rest.errorBody must be an object"],
    ["a cycle", { errorBody: cyclic }, "rest.errorBody.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a must be in at most 16"],
    ["too many levels", { errorBody: deep }, "rest.errorBody.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a must be in at most 16"],
    ["a Date", { errorBody: { at: new Date(0) } }, "rest.errorBody.at must be JSON"],
    ["Infinity", { errorBody: { at: Infinity } }, "rest.errorBody.at must be JSON"],
    ["a function", { errorBody: { at: () => 1 } }, "rest.errorBody.at must be JSON"],
    ["rest.errors in addition", { errorBody, errors: "google" },
      "rest.errorBody must not be combined with rest.errors; use one of them"],
    ["rest.errorRecord in addition", { errorBody, errorRecord: () => ({ httpStatus: 400, body: {} }) },
      "rest.errorBody must not be combined with rest.errorRecord; use one of them"],
  ],
)("The gateway and createOpenApi refuse errorBody with %s", async (_name, rest, problem) => {
  await expect(getAll(rest, reading)).rejects.toThrow(problem);
  expect(() => describeErrors(rest)).toThrow(problem);
});

/** Returns the schema of error bodies. */
function describeErrors(rest: RestOptions): OpenApiSchema | undefined {
  const { paths, components } = createOpenApi([GreenhouseService], { info: { title: "t", version: "1" }, rest });
  const { schema } =
    paths[reading.replace("/s/", "/{sensor}/")]?.get?.responses["4XX"]?.content?.["application/json"] ?? {};
  expect(schema).toEqual({ $ref: "#/components/schemas/ErrorBody" });
  return components?.schemas?.["ErrorBody"];
}

test("the OpenAPI document with errorBody has a schema of the template, with an example", () => {
  const template = { ok: false, error: { name: "{code}", code: "{number}" }, items: [{ text: "{message}" }] };
  expect(describeErrors({ errorBody: template })).toMatchObject({
    type: "object",
    required: ["ok", "error", "items"],
    properties: {
      ok: { const: false },
      error: { type: "object", properties: { name: { type: "string" }, code: { type: "integer" } } },
      items: { type: "array", items: { anyOf: [{ type: "object", required: ["text"] }] } },
    },
    examples: [{ ok: false, error: { name: "NOT_FOUND", code: 5 }, items: [{ text: "not found" }] }],
  });
});

test.each<{ name: string; items: JsonValue[]; want: object }>([
  { name: "an empty array", items: [], want: { type: "array", items: {}, maxItems: 0 } },
  {
    name: "equal members",
    items: ["{message}", "{message}", "none", "none"],
    want: { type: "array", items: { anyOf: [{ type: "string" }, { const: "none" }] }, maxItems: 4 },
  },
])("the OpenAPI document with errorBody has a valid schema for $name", ({ items, want }) => {
  expect(describeErrors({ errorBody: { items, nested: [{ items }] } })).toMatchObject({
    properties: { items: want, nested: { items: { anyOf: [{ properties: { items: want } }] } } },
  });
});

test("the OpenAPI document with errorBody describes details and the HTTP status", () =>
  expect(describeErrors({ errorBody: { d: "{details}", s: "{httpStatus}" } })).toMatchObject({
    properties: { d: { type: "array" }, s: { type: "integer", description: "The HTTP status." } },
  }));
