import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGateway, type RestOptions } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { exchangeFetch, type Field, kitchenSinkOptions, serviceIn, stringField } from "@protoport/testing";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";

/** How a kitchen sink responds: with the message that its handler got, or with the error. */
type SinkAnswer = { readonly sink: unknown } | { readonly httpStatus: number; readonly message: unknown };

/** Creates a function that sends requests, such as `GET /v1/query?a=b`, to a kitchen sink with REST options. */
function createSink(
  rest: RestOptions,
): (request: string, body?: string | Uint8Array, type?: string) => Promise<SinkAnswer> {
  const gateway = createGateway({ ...kitchenSinkOptions, nameOptions: false, rest });
  return async (request, body, type) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    const header: readonly Field[] = type === undefined ? [] : [["content-type", type]];
    const sent = { httpMethod, path, header, ...(body !== undefined && { body: Buffer.from(body) }) };
    const response = await exchangeFetch(gateway.fetch, sent);
    const json: { sink?: unknown; message?: unknown } = JSON.parse(String(response.body));
    return response.httpStatus === 200
      ? { sink: json.sink }
      : { httpStatus: response.httpStatus, message: json.message };
  };
}

// The rest.service options for queries: ignoredQueryParameters, mapsInQuery, structsInQuery and goDurations.

describe("goDurations", () => {
  const ask = createSink({ service: () => ({ goDurations: true }) });

  test.each([
    { text: "1.5s", duration: "1.500s" },
    { text: "5m", duration: "300s" },
    { text: "13h0m0s", duration: "46800s" },
    { text: "-1.5h", duration: "-5400s" },
    { text: "%2B1m30s", duration: "90s" },
    { text: "1h2m3.004s5ms6us7ns", duration: "3723.009006007s" },
    { text: "2%C2%B5s3%CE%BCs", duration: "0.000005s" },
    { text: ".5m", duration: "30s" },
    { text: "1.m", duration: "60s" },
    { text: "0", duration: "0s" },
    { text: "9223372036854775807ns", duration: "9223372036.854775807s" },
    { text: "315576000000s", duration: "315576000000s" },
  ])("$text and $duration are the same duration", async ({ text, duration }) => {
    expect(await ask(`GET /v1/query?duration=${text}`)).toEqual({ sink: { duration } });
  });

  test.each(["5", "m", "5d", "5m ", "1h-5m", "5M", "9223372036854775808ns", "315576000000m", "."])(
    "%s is refused",
    async (text) => {
      const message = expect.stringContaining("is not a duration");
      expect(await ask(`GET /v1/query?duration=${encodeURIComponent(text)}`)).toEqual({ httpStatus: 400, message });
    },
  );

  test("a Go duration is refused without the option", async () =>
    expect(await createSink({})("GET /v1/query?duration=5m")).toMatchObject({ httpStatus: 400 }));
});

describe("structsInQuery", () => {
  const ask = createSink({ service: () => ({ structsInQuery: true }) });
  const asked = async (query: Readonly<Record<string, string>>): Promise<unknown> =>
    await ask(`GET /v1/query?${new URLSearchParams(query).toString()}`);

  test.each<{ readonly query: Readonly<Record<string, string>>; readonly sink: object }>([
    { query: { struct: '{"a":{"b":[1,null,"x"]}}' }, sink: { struct: { a: { b: [1, null, "x"] } } } },
    { query: { struct: "{}" }, sink: { struct: {} } },
    { query: { value: '"text"' }, sink: { value: "text" } },
    { query: { value: "null" }, sink: { value: null } },
    { query: { value: "[1,{}]" }, sink: { value: [1, {}] } },
    { query: { list: '[1,"a"]' }, sink: { list: [1, "a"] } },
    { query: { choice_struct: '{"a":1}' }, sink: { choiceStruct: { a: 1 } } },
    { query: { structs: '{"a":1}', values: "true" }, sink: { structs: [{ a: 1 }], values: [true] } },
    { query: { "child.struct": '{"a":1}' }, sink: { child: { struct: { a: 1 } } } },
  ])("$query sets the field", async ({ query, sink }) => expect(await asked(query)).toEqual({ sink }));

  test.each([
    { query: { struct: "[1]" } },
    { query: { struct: "null" } },
    { query: { struct: '{"a":1' } },
    { query: { struct: '{"a":1,"a":2}' } },
    { query: { value: "text" } },
    { query: { list: "{}" } },
    { query: { struct: `${'{"a":'.repeat(101)}1${"}".repeat(101)}` } },
  ])("$query is refused", async ({ query }) => {
    const message = expect.stringContaining("is not the JSON of a google.protobuf.");
    expect(await asked(query)).toEqual({ httpStatus: 400, message });
  });

  test("a Struct is refused without the option", async () =>
    expect(await createSink({})("GET /v1/query?struct=%7B%7D")).toMatchObject({ httpStatus: 400 }));
});

describe("ignoredQueryParameters", () => {
  const ask = createSink({ service: () => ({ ignoredQueryParameters: ["utm_*", "key", "f_*", "fInt64"] }) });

  test.each([
    { query: "utm_source=a&key=b&utm_=c", sink: {} },
    { query: "f_string=a&utm_source=b", sink: { fString: "a" } },
    { query: "utm_term=%zz&utm_%61=%ff&key", sink: {} },
    { query: "key=1&key=2", sink: {} },
    { query: "fInt64=7", sink: { fInt64: "7" } },
  ])("accepts $query and decodes only request fields", async ({ query, sink }) => {
    expect(await ask(`GET /v1/query?${query}`)).toEqual({ sink });
  });

  test.each([
    ["a name that only starts with a listed name", "keys=1", 'unknown query parameter "keys"'],
    ["a name that contains a listed prefix", "xutm_a=1", 'unknown query parameter "xutm_a"'],
    ["a name in another case", "Key=1", 'unknown query parameter "Key"'],
    ["a malformed name", "utm_%zz=1", 'query parameter "utm_%zz=1" is malformed'],
    ["a request field with an invalid value", "f_int64=x", expect.stringContaining("is not an int64")],
    ["an unlisted name", "utm_a=1&x=2", 'unknown query parameter "x"'],
  ])("does not accept %s in a query", async (_why, query, message) => {
    expect(await ask(`GET /v1/query?${query}`)).toEqual({ httpStatus: 400, message });
  });

  test("does not cover fields that the path or the body sets", async () => {
    expect(await ask("GET /v1/int64/7?fInt64=8")).toMatchObject({ httpStatus: 400 });
    expect(await ask("POST /v1/sinks?f_int64=8", "{}")).toMatchObject({ httpStatus: 400 });
  });

  test("is configured per service", async () => {
    const rest: RestOptions = {
      service: ({ name }) => (name === "Shelves" ? { ignoredQueryParameters: ["key"] } : {}),
    };
    expect(await createSink(rest)("GET /v1/query?key=1")).toMatchObject({ httpStatus: 400 });
    const { fetch } = createGateway({ ...kitchenSinkOptions, rest });
    const shelf = { httpMethod: "GET", path: "/v1/shelves/1?key=1", header: [] };
    expect((await exchangeFetch(fetch, shelf)).httpStatus).toBe(200);
  });

  test("never covers request fields of a client stream", async () => {
    const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
    const fetch = serveByFetch(
      {
        async recordReadings(readings) {
          let count = 0;
          for await (const _ of readings) count++;
          return { count };
        },
      },
      {
        rest: {
          rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "degrees_celsius" }],
          service: () => ({ ignoredQueryParameters: ["utm_*", "sens*", "degrees*"] }),
        },
      },
    );
    const post = async (query: string): Promise<number> =>
      (await exchangeFetch(fetch, { httpMethod: "POST", path: `/readings?${query}`, header: [] })).httpStatus;
    expect(await post("utm_a=%zz&utm_b")).toBe(200);
    // Request fields are never ignored, whether the query may set them or not.
    expect([await post("sensor=a"), await post("degrees_celsius=1")]).toEqual([400, 400]);
  });
});

describe("map entries in a query", () => {
  const ask = createSink({ service: () => ({ mapsInQuery: true }) });

  test.each([
    { query: "labels[a]=b&labels%5Bc%5D=d", sink: { labels: { a: "b", c: "d" } } },
    { query: "counts[true]=1&counts[false]=-1", sink: { counts: { true: 1, false: -1 } } },
    { query: "palette[a]=COLOR_RED&palette[b]=2", sink: { palette: { a: "COLOR_RED", b: "COLOR_GREEN" } } },
    { query: "blobByName[a]=AQI", sink: { blobByName: { a: "AQI=" } } },
    { query: "child.labels[a.b]=c", sink: { child: { labels: { "a.b": "c" } } } },
    { query: "labels[]=a&labels[[x]]=b", sink: { labels: { "": "a", "[x]": "b" } } },
    { query: "labels[__proto__]=a", sink: { labels: JSON.parse('{"__proto__":"a"}') } },
    { query: "palette[a]=COLOR_GREEN", sink: { palette: { a: "COLOR_GREEN" } } },
    { query: "labels[constructor]=a", sink: { labels: { constructor: "a" } } },
  ])("are decoded from $query into the message", async ({ query, sink }) => {
    expect(await ask(`GET /v1/query?${query}`)).toEqual({ sink });
  });

  test.each([
    ["a repeated key", "labels[a]=1&labels[a]=1", "is set more than once"],
    ["a repeated key under both field names", "blob_by_name[a]=&blobByName[a]=", "more than once"],
    ["a non-canonical key", "counts[TRUE]=1", '"TRUE" is not a valid key'],
    ["an invalid value", "counts[true]=x", '"x" is not an int32'],
    ["message values", "nested_by_id[1]=x", "its field cannot be set in a query"],
    ["google.protobuf.Value values", "value_by_name[a]=1", "its field cannot be set in a query"],
    ["no key", "labels=a", "its field cannot be set in a query"],
    ["a key for a list field", "tags[0]=a", 'unknown query parameter "tags[0]"'],
    ["a field name after the key", "labels[a].b=c", 'unknown query parameter "labels[a].b"'],
  ])("with %s are refused", async (_why, query, message) => {
    expect(await ask(`GET /v1/query?${query}`)).toEqual({ httpStatus: 400, message: expect.stringContaining(message) });
  });

  test("cannot set a map that the body also sets", async () => {
    const want = { httpStatus: 400, message: 'query parameter "labels[a]" is already set by the path or the body' };
    expect(await ask("POST /v1/sinks?labels[a]=b", "{}")).toEqual(want);
  });

  test.each(["grpc-gateway", "envoy"] as const)(
    "in the profile %s are refused if an enum name is unknown",
    async (profile) => {
      const lenient = createSink({ profile, service: () => ({ mapsInQuery: true }) });
      const want = { httpStatus: 400, message: expect.stringContaining('query parameter "palette[a]" is not valid') };
      expect(await lenient("GET /v1/query?palette[a]=NEW&palette[b]=COLOR_RED")).toMatchObject(want);
    },
  );

  test("are described as objects in the OpenAPI document", () => {
    const int32 = { type: "integer", format: "int32" };
    const rest = { service: () => ({ mapsInQuery: true }) };
    const described = createOpenApi([KitchenSink], { info: { title: "t", version: "1" }, rest });
    const parameters = described.paths["/v1/query"]?.get?.parameters ?? [];
    const want = ["labels", "counts", "palette", "blobByName"];
    expect(parameters.filter(({ style }) => style !== undefined).map(({ name }) => name)).toEqual(want);
    const keysAndValues = { propertyNames: { enum: ["true", "false"] }, additionalProperties: int32 };
    const counts = { name: "counts", in: "query", schema: { type: "object", ...keysAndValues } };
    expect(parameters.find(({ name }) => name === "counts")).toEqual({ ...counts, style: "deepObject", explode: true });
  });
});

test.each([
  { profile: "google", query: "fields=name", want: '{"fields":"name","name":"n"}' },
  { profile: "google", query: "fields=name&$fields=fields", want: '{"fields":"name"}' },
  { profile: "grpc-gateway", query: "pretty=yes", want: '{"fields":"","pretty":"yes","name":"n"}' },
] as const)("despite the profile $profile, $query sets the request's own field", async ({ profile, query, want }) => {
  const field = ["fields", "pretty", "name"].map((name, at) => stringField(name, at + 1));
  const method = [{ name: "Get", inputType: ".named.Named", outputType: ".named.Named" }];
  const parts = { messageType: [{ name: "Named", field }], service: [{ name: "Names", method }] };
  const service = serviceIn({ name: "named.proto", package: "named", syntax: "proto3", ...parts }, "named.Names");
  const none: Partial<ServiceImpl<DescService>> = {};
  const handlers = Object.assign(none, { get: (request: unknown) => request });
  const rules = [{ selector: "named.Names.Get", pattern: { case: "get", value: "/names/{name}" } }] as const;
  const { fetch } = createGateway({ rest: { profile, rules }, routes: (router) => router.service(service, handlers) });
  expect(await (await fetch(new Request(`http://a/names/n?${query}`))).text()).toBe(want);
});
