import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createRestTransport } from "../../../rest-client/src/index.ts";
import { BadRequestSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import type { FetchHandler, RestOptions } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";

const details = [{ desc: BadRequestSchema, value: { fieldViolations: [{ field: "bed" }] } }];

const serve = (rest: RestOptions): FetchHandler =>
  serveByFetch(
    {
      getReading: ({ sensor }) => {
        if (sensor === "none") throw new ConnectError("no sensor", Code.NotFound);
        throw new ConnectError("wrong bed", Code.InvalidArgument, undefined, details);
      },
      async *watchReadings({ sensor }) {
        yield { sensor: "s0" };
        if (sensor === "broken") throw new ConnectError("no sensor", Code.NotFound);
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
