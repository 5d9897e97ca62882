import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { BadRequestSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import type { RestOptions } from "../../src/index.ts";
import { createOpenApi, type OpenApiSchema } from "../../src/openapi/index.ts";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";
import { throws } from "../../../testing/src/callback-forms.ts";

// The template `rest.errorBody`.

/** A message that would change the JSON if it were inserted as text. */
const message = 'no "{code}"\n, {message} \\';
const details = [{ desc: BadRequestSchema, value: { fieldViolations: [{ field: "bed" }] } }];

async function get(rest: RestOptions, path: string, accept = "*/*"): Promise<readonly unknown[]> {
  const fetch = serveByFetch(
    {
      getReading: throws(new ConnectError(message, Code.NotFound, undefined, details)),
      async *watchReadings() {
        yield { sensor: "s" };
        throw new ConnectError(message, Code.NotFound);
      },
    },
    { rest },
  );
  const response = await fetch(new Request(`http://a${path}`, { headers: { accept } }));
  return [response.status, response.headers.get("content-type"), await response.text()];
}

const reading = "/sensors/s/reading";
const violations = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{ field: "bed" }] }];

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
  const [status, type, text] = await get({ errorBody }, reading);
  expect([status, type, JSON.parse(String(text))]).toEqual([404, "application/json", want]);
});

const cyclic: JsonObject = {};
cyclic["a"] = cyclic;
let deep: JsonObject = {};
for (let level = 0; level < 20_000; level++) deep = { a: deep };

const errorBody: JsonObject = { error: { code: "{httpStatus}", text: "{message}" } };

test("errorBody is the body for an unknown path, next to a gateway with another template", async () => {
  const other = get({ errorBody: { reason: "{code}" } }, "/nothing");
  expect([await get({ errorBody }, "/nothing"), await other]).toEqual([
    [404, "application/json", expect.stringMatching(/^\{"error":\{"code":404,"text":"[^"]+"\}\}$/)],
    [404, "application/json", '{"reason":"NOT_FOUND"}'],
  ]);
});

test("errorBody is sent with the content type of the profile", async () => {
  const [, type, text] = await get({ errorBody: { reason: "{code}" }, profile: "a2a" }, reading);
  expect([type, text]).toEqual(["application/a2a+json", '{"reason":"NOT_FOUND"}']);
});

test("errorBody is sent instead of google.rpc.Status to clients that accept protobuf", async () => {
  const rest: RestOptions = { errorBody: { reason: "{code}" }, profile: "grpc-gateway" };
  const want = [404, "application/json", '{"reason":"NOT_FOUND"}'];
  expect(await get(rest, reading, "application/x-protobuf")).toEqual(want);
});

test.each([
  { accept: "application/x-ndjson", end: '{"@error":{"reason":"NOT_FOUND"}}\n' },
  { accept: "text/event-stream", end: 'event: error\ndata: {"reason":"NOT_FOUND"}\n\n' },
])("errorBody is the error at the end of a stream in $accept", async ({ accept, end }) => {
  const [status, , text] = await get({ errorBody: { reason: "{code}" } }, "/sensors/s/readings", accept);
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
  await expect(get(rest, reading)).rejects.toThrow(problem);
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
