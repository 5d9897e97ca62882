import type { DescField, DescService } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/create-open-api.ts";
import { maxDocumentFields, maxOperationFields } from "../../src/openapi/field-budget.ts";
import { base64Pattern, durationPattern, fieldMaskPattern } from "../../src/openapi/value-schema.ts";
// oxfmt-ignore
import type { OpenApiDocument, OpenApiOperation, OpenApiPathItem, OpenApiSchema
} from "../../src/openapi/open-api-document.ts";
import type { GatewayOptions } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
import { compileRestRoutes } from "../../src/protocols/rest/rules/index.ts";
import { Health } from "../../src/health/index.ts";
import { messageIn, serviceIn, stringField } from "../../../testing/src/gateway/file-init.ts";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { KitchenSink, NestedSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

const int64 = { type: "string", format: "int64", pattern: expect.stringContaining("-9223372036854775808") };
const int32 = { type: "integer", format: "int32" };
const uint32 = { type: "integer", format: "uint32", minimum: 0, maximum: 2 ** 32 - 1 };
const uint64 = { type: "integer", format: "uint64", minimum: 0, maximum: 2 ** 64 - 2 ** 11 };
const info = { title: "Test", version: "1" };

const comments = new Map([
  ["kitchensink.v1.KitchenSink", "Takes all.\n\nAnd more."],
  ["kitchensink.v1.KitchenSink.Query", "Asks. Nothing but\nthe query.\n\nAt length."],
  ["kitchensink.v1.KitchenSink.Create", "Makes one thing\nout of many"],
  ["kitchensink.v1.KitchenSink.Root", "The root."],
  ["kitchensink.v1.Sink.f_int64", "A long one."],
  ["kitchensink.v1.Sink.nested", "One inside."],
  ["kitchensink.v1.Nested", "A nest."],
  ["kitchensink.v1.Color", "A colour."],
  ["kitchensink.v1.Color.COLOR_RED", "Like\nroses."],
]);

const describeSink = (options: Partial<OpenApiOptions> = {}): OpenApiDocument =>
  createOpenApi([KitchenSink], { info, comments, operationIds: "rpc", ...options });

const omitted: string[] = [];
const document = describeSink({
  onOmitted: ({ pattern }, reason) => omitted.push(`${pattern.httpMethod} ${pattern.pathTemplate}: ${reason}`),
});

/** The document for a gateway with the settings that apply to a large service's fields. */
const unusual = describeSink({
  describeHeader: ({ name }) => (name === "Query" ? [{ name: "X-Shade", schema: { type: "string" } }] : []),
  jsonOptions: { useProtoFieldName: true },
});

/** Describes a small service, which takes a fiftieth of the time. */
const describeOrders = (options: Partial<OpenApiOptions>): OpenApiDocument =>
  createOpenApi([OrderService], { info, ...options });

function operation(text: string, inside: OpenApiDocument = document): OpenApiOperation {
  const [method, path = ""] = text.split(" ");
  const item: OpenApiPathItem = inside.paths[path] ?? {};
  const found = Object.entries(item).find(([name]) => name.toUpperCase() === method)?.[1];
  if (found === undefined) throw new Error(`${text} is not described`);
  return found;
}

const bodyOf = (text: string): unknown => operation(text).requestBody?.content["application/json"]?.schema;
const answerOf = (text: string): unknown => operation(text).responses["200"]?.content?.["application/json"]?.schema;

test("header parameters follow path and query parameters", () => {
  const operations = Object.values(unusual.paths).flatMap((item) => Object.values(item));
  const fields = operations.map(({ operationId, parameters = [] }) => [operationId, parameters.at(-1)?.name]);
  expect(fields.filter(([, name]) => name === "X-Shade")).toEqual([["query", "X-Shade"]]);
  const want = { name: "X-Shade", in: "header", schema: { type: "string" } };
  expect(operation("GET /v1/query", unusual).parameters?.at(-1)).toEqual(want);
});

test("message schemas are sorted by name", () => {
  const names = Object.keys(document.components?.schemas ?? {});
  expect(names).toEqual(names.toSorted());
  expect(names.length).toBeGreaterThan(3);
});

test.each([
  ["double", "f_double", { type: "number", format: "double" }],
  ["float", "f_float", { type: "number", format: "float", minimum: -3.4028235e38, maximum: 3.4028235e38 }],
  ["int32", "f_int32", int32],
  ["int64", "f_int64", { type: "integer", format: "int64" }],
  ["uint32", "f_uint32", uint32],
  ["uint64", "f_uint64", uint64],
  ["sint32", "f_sint32", int32],
  ["sint64", "f_sint64", { type: "integer", format: "int64" }],
  ["fixed32", "f_fixed32", uint32],
  ["fixed64", "f_fixed64", uint64],
  ["sfixed32", "f_sfixed32", int32],
  ["sfixed64", "f_sfixed64", { type: "integer", format: "int64" }],
  ["bool", "f_bool", { type: "boolean" }],
  ["string", "f_string", { type: "string" }],
  ["bytes", "f_bytes", { type: "string", contentEncoding: "base64", pattern: base64Pattern }],
  ["enum", "f_enum", { $ref: "#/components/schemas/Color" }],
  ["maybe", "maybe_int64", { type: "integer", format: "int64" }],
  ["wrapper", "w_int64", { type: "integer", format: "int64" }],
  ["time", "time", { type: "string", format: "date-time" }],
  ["duration", "duration", { type: "string", pattern: durationPattern }],
])("a path parameter at /v1/%s/{%s} has the schema of its field", (folder, name, schema) => {
  const [parameter] = operation(`GET /v1/${folder}/{${name}}`).parameters ?? [];
  expect(parameter).toMatchObject({ name, in: "path", required: true });
  expect(parameter?.schema).toEqual(schema);
});

test("a path parameter has its field's comment as description", () => {
  const [parameter] = operation("GET /v1/int64/{f_int64}").parameters ?? [];
  expect(parameter?.description).toBe("A long one.");
});

test("a path parameter is described as matching several segments", () => {
  const [parameter] = operation("GET /v1/files/{f_string}").parameters ?? [];
  expect(parameter?.description).toBe("Any number of path segments, separated by slashes.");
});

const about = ({ parameters = [] }: OpenApiOperation): unknown =>
  parameters.flatMap(({ in: place, name, description, schema }) =>
    place === "path" ? [{ name, description, type: schema["type"], pattern: schema["pattern"] }] : [],
  );

test("a wildcard inside a path variable has a description of its position in the variable's template", () => {
  const notes = new Map([["kitchensink.v1.Sink.f_string", "Such as shelves/1/books/2."]]);
  const described = createOpenApi([KitchenSink], { info, comments: notes });
  const form = "in `f_string`, whose format is `shelves/{shelf}/books/{book}`.";
  expect(about(operation("GET /v1/shelves/{shelf}/books/{book}", described))).toEqual([
    { name: "shelf", description: `The part after \`shelves/\` ${form}`, type: "string", pattern: "^[^/]+$" },
    { name: "book", description: `The part after \`books/\` ${form}`, type: "string", pattern: "^[^/]+$" },
  ]);
  expect(about(operation("GET /v1/string/{f_string}", described))).toEqual([
    { name: "f_string", description: "Such as shelves/1/books/2.", type: "string", pattern: undefined },
  ]);
});

test("a wildcard inside a path variable is named by its position if no literal precedes it", () => {
  const template = { pattern: { case: "get", value: "/{f_string=*/files/**}" } } as const;
  const selector = `${KitchenSink.typeName}.Root`;
  const described = createOpenApi([KitchenSink], { info, rest: { rules: [{ selector, ...template }] } });
  const form = "in `f_string`, whose format is `{f_string_1}/files/{file}`.";
  expect(about(operation("GET /{f_string_1}/files/{file}", described))).toEqual([
    { name: "f_string_1", description: `Wildcard 1 ${form}`, type: "string", pattern: "^[^/]+$" },
    {
      name: "file",
      description: `The part after \`files/\` ${form}\n\nAny number of path segments, separated by slashes.`,
      type: "string",
      pattern: undefined,
    },
  ]);
});

describe("the query parameters", () => {
  const query = (text: string): string[] =>
    (operation(text).parameters ?? []).filter((parameter) => parameter.in === "query").map(({ name }) => name);

  test.each(["fInt64", "ids", "nested.text", "nested.tags", "choiceNested.number", "wInt64", "mask", "customName"])(
    "include the field %s of the request",
    (name) => expect(query("GET /v1/query")).toContain(name),
  );

  test.each([
    { what: "a map", name: "labels" },
    { what: "a repeated message", name: "nesteds" },
    { what: "the fields of a well-known type", name: "any.typeUrl" },
  ])("omit $what in the request", ({ name }) => expect(query("GET /v1/query")).not.toContain(name));

  test.each([
    ["is set by the path", "GET /v1/pairs/{f_string}/{nested_text}", "nested.number", "nested.text"],
    ["is the body", "PATCH /v1/body/tags", "ids", "tags"],
  ])("omit a field that %s instead", (_what, at, kept, gone) => {
    const names = query(at);
    expect([names.includes(kept), names.includes(gone)]).toEqual([true, false]);
  });

  test("are empty if the body is the complete message", () => expect(query("POST /v1/sinks")).toEqual([]));
});

describe("the schema of a request body", () => {
  test.each([
    ["POST /v1/sinks", { $ref: "#/components/schemas/Sink" }],
    ["PATCH /v1/children/{f_string}", { $ref: "#/components/schemas/Sink" }],
    ["PATCH /v1/body/tags", { type: "array", items: { type: "string" } }],
    ["PATCH /v1/body/nesteds", { type: "array", items: { $ref: "#/components/schemas/Nested" } }],
    ["PATCH /v1/body/labels", { type: "object", additionalProperties: { type: "string" } }],
    ["PATCH /v1/body/int64", { ...int64, description: "A long one." }],
    ["PATCH /v1/body/time", { type: "string", format: "date-time" }],
    ["PATCH /v1/body/value", {}],
    ["PATCH /v1/body/struct", { type: "object", additionalProperties: true }],
    ["PATCH /v1/body/wrapper", { type: "string" }],
    ["GET /v1/query", undefined],
  ])("for %s is %j in the document", (at, want) => expect(bodyOf(at)).toEqual(want));

  test.each(["fInt64", "fSint64", "fSfixed64"])("describes %s as a string of digits", (name) => {
    expect(document.components?.schemas?.["Sink"]).toHaveProperty(`properties.${name}`, expect.objectContaining(int64));
  });

  test.each(["fUint64", "fFixed64"])("describes %s as a string of digits without a sign", (name) => {
    expect(document.components?.schemas?.["Sink"]).toHaveProperty(
      `properties.${name}`,
      expect.objectContaining({ type: "string", format: "uint64", pattern: expect.stringMatching(/^\^\(0\|\(/) }),
    );
  });

  test("omits a field that the path sets", () => {
    const body = bodyOf("PUT /v1/sinks/{f_int64}");
    expect(body).toHaveProperty("properties.fInt32");
    expect(body).not.toHaveProperty("properties.fInt64");
  });

  test("omits only the nested field that the path sets", () => {
    const { properties }: { properties?: object } = Object(bodyOf("PATCH /v1/inner/{nested_inner_inner_text}"));
    const want = { text: {}, inner: { properties: { text: {}, inner: { properties: { number: {} } } } } };
    expect(properties).toMatchObject(want);
    expect(properties).not.toHaveProperty("inner.properties.inner.properties.text");
  });
});

describe("the description of a response", () => {
  const nestedSchema = { $ref: "#/components/schemas/Nested" };

  test.each([
    ["GET /v1/query", { $ref: "#/components/schemas/Echo" }],
    ["DELETE /v1/sinks/{f_int64}", { type: "object", additionalProperties: false }],
    ["GET /v1/response/nested", { anyOf: [nestedSchema, { type: "null" }], description: "One inside." }],
    ["GET /v1/response/time", { anyOf: [{ type: "string", format: "date-time" }, { type: "null" }] }],
    ["GET /v1/response/tags", { type: "array", items: { type: "string" } }],
    ["GET /v1/response/int64", { ...int64, description: "A long one." }],
    ["GET /v1/response/enum", { $ref: "#/components/schemas/Color" }],
  ])("to %s has the schema %j for status 200", (at, want) => expect(answerOf(at)).toEqual(want));

  test.each([200, 204] as const)("without content has the status %i from the option emptyResponse", (emptyResponse) => {
    const described = describeOrders({ rest: { emptyResponse }, describeSuccess: ({ name }) => `${name} is done.` });
    expect(operation("DELETE /orders/{id}", described).responses).toMatchObject({
      [emptyResponse]: { description: "DeleteOrder is done." },
    });
  });

  test.each(["4XX", "5XX"])("to a failed request (%s) has the schema of google.rpc.Status by default", (status) => {
    expect(operation("GET /").responses[status]).toMatchObject({
      content: { "application/json": { schema: { $ref: "#/components/schemas/google.rpc.Status" } } },
    });
    const code = { type: "integer", "x-value-names": { "5": "NOT_FOUND" } };
    const text = { type: "string" };
    const items = { type: "object", properties: { "@type": text }, required: ["@type"] };
    expect(document.components?.schemas?.["google.rpc.Status"]).toMatchObject({
      properties: { code, status: text, message: text, details: { type: "array", items } },
      required: ["code", "status", "message", "details"],
      examples: [{ code: 5, status: "NOT_FOUND", message: "not found", details: [] }],
    });
  });

  test("to a failed request has the schema of the configured error record", () => {
    const record = { status: "4XX", description: "No.", record: NestedSchema, codeField: "number" };
    const described = describeOrders({ comments, errors: [record] });
    expect(operation("DELETE /orders/{id}", described).responses["4XX"]).toEqual({
      description: "No.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/Nested" } } },
    });
    expect(described.components?.schemas?.["Nested"]).toMatchObject({
      description: "A nest.",
      properties: { number: { ...int64, "x-value-names": { "5": "NOT_FOUND" } } },
      required: ["text", "number", "flag", "tags", "inner"],
    });
  });

  test("to a failed request has the configured content type and example", () => {
    const example = { text: "no such bed" };
    const contentType = "application/problem+json";
    const errors = [{ status: "400", description: "No.", record: { type: "object" }, contentType, example } as const];
    const described = describeOrders({ errors, servers: [{ url: "https://shop.example" }] });
    expect(described.servers).toEqual([{ url: "https://shop.example" }]);
    expect(operation("DELETE /orders/{id}", described).responses["400"]?.content).toEqual({
      [contentType]: { schema: { type: "object" }, example },
    });
  });

  test("uses an error record's full name if the short name is ambiguous", () => {
    const file = { name: "other.proto", package: "other.v1", syntax: "proto3", messageType: [{ name: "Shelf" }] };
    const errors = [{ status: "4XX", description: "No.", record: messageIn(file, "other.v1.Shelf") } as const];
    const described = createOpenApi([Shelves], { info, errors });
    const names = Object.keys(described.components?.schemas ?? {}).filter((name) => name.endsWith("Shelf"));
    expect(names.toSorted()).toEqual(["Shelf", "kitchensink.v1.Shelf"]);
  });
});

test.each([
  ["GET /v1/query", "Asks", "Nothing but\nthe query.\n\nAt length."],
  ["POST /v1/sinks", "Makes one thing out of many", "The RPC `kitchensink.v1.KitchenSink.Create`."],
  ["GET /", "The root", "The RPC `kitchensink.v1.KitchenSink.Root`."],
  ["GET /v1/fail/{f_int32}", "Fail", "The RPC `kitchensink.v1.KitchenSink.Fail`."],
])("a comment on %s, if any, becomes the summary and description", (at, summary, description) => {
  expect([operation(at).summary, operation(at).description]).toEqual([summary, description]);
});

test("a comment on the only service is the description of the document", () =>
  expect(document.info.description).toBe("Takes all.\n\nAnd more."));

test("a comment on an enum is extended by the comments on the enum's values", () =>
  expect(document.components?.schemas?.["Color"]).toEqual({
    type: "string",
    description: "A colour.\n\n- `COLOR_RED`: Like\n  roses.",
    enum: ["COLOR_UNSPECIFIED", "COLOR_RED", "COLOR_GREEN"],
  }));

test("createOpenApi uses proto field names with useProtoFieldName", () => {
  expect(unusual.components?.schemas?.["Sink"]).toHaveProperty("properties.f_int64");
  expect(operation("GET /v1/query", unusual).parameters).toContainEqual(
    expect.objectContaining({ name: "f_int64", in: "query" }),
  );
});

test("createOpenApi creates a tag for each service with operations", () => {
  const shelves = new Map([["kitchensink.v1.Shelves", "Holds all.\n\nAnd more."]]);
  const both = createOpenApi([Shelves, OrderService, Health], { info, comments: shelves });
  expect(both.tags).toEqual([
    { name: "Shelves", description: "Holds all.\n\nAnd more." },
    { name: "OrderService", description: "The RPCs of `orders.v1.OrderService`." },
  ]);
  expect(operation("DELETE /orders/{id}", both).tags).toEqual(["OrderService"]);
});

test("createOpenApi omits the comment of the only service from its tag", () =>
  expect(document.tags).toEqual([{ name: "KitchenSink", description: "The RPCs of `kitchensink.v1.KitchenSink`." }]));

test("createOpenApi uses a service's full name if the short name is ambiguous", () => {
  const services = ["old.v1", "old.v2"].map(retiredService);
  const { tags, paths, components } = createOpenApi(services, {
    info,
    rest: { rules: services.map(({ typeName }) => getRule(`${typeName}.Find`, `/${typeName}`)) },
  });
  expect(tags.map(({ name }) => name)).toEqual(["old.v1.Finder", "old.v2.Finder"]);
  expect(paths["/old.v1.Finder"]?.get).toMatchObject({ tags: ["old.v1.Finder"], deprecated: true });
  // Only the first fifty members of the oneof exclude each other.
  const { dependentSchemas } = components?.schemas?.["Query"] ?? {};
  expect(Object.keys(Object(dependentSchemas)).length).toBe(49);
});

const getRule = (selector: string, path: string) => ({ selector, pattern: { case: "get", value: path } }) as const;

/** Returns a deprecated service. Its only RPC is not deprecated, and its message has a oneof with 51 strings. */
function retiredService(packageName: string): DescService {
  const type = `.${packageName}.Query`;
  const field = Array.from({ length: 51 }, (_, at) => ({ ...stringField(`by${at}`, at + 1), oneofIndex: 0 }));
  const messageType = [{ name: "Query", oneofDecl: [{ name: "by" }], field }];
  const method = [{ name: "Find", inputType: type, outputType: type }];
  const service = [{ name: "Finder", options: { deprecated: true }, method }];
  const file = { name: `${packageName}.proto`, package: packageName, syntax: "proto3", messageType, service };
  return serviceIn(file, `${packageName}.Finder`);
}

describe("a field with field_behavior (AIP-203)", () => {
  const shelf = createOpenApi([Shelves], { info });
  const schema = (name: string): OpenApiSchema | undefined => shelf.components?.schemas?.[name];

  test("is not required if responses may omit its zero value", () =>
    expect(schema("Shelf")?.["required"]).toEqual(["place"]));

  test("is required if the gateway writes zero values", () => {
    const whole = createOpenApi([Shelves], { info, jsonOptions: { alwaysEmitImplicit: true } });
    expect(whole.components?.schemas?.["Shelf"]?.["required"]).toEqual(["widthMm", "place"]);
  });

  test("is optional with OUTPUT_ONLY, even if a validation rule requires it", () => {
    const validation = {
      keywordsOf: () => undefined,
      isRequired: ({ name }: DescField) => name.startsWith("b") || name === "theme",
      exampleOf: () => undefined,
      accepts: () => true,
    };
    const { components } = createOpenApi([Shelves], { info, jsonOptions: { alwaysEmitImplicit: true }, validation });
    expect(components?.schemas?.["Shelf"]?.["required"]).toEqual(["theme", "widthMm", "place"]);
  });

  test("makes the request body required if the field is the body", () => {
    expect(operation("PATCH /v1/shelves/{shelf}", shelf).requestBody?.required).toBe(true);
    expect(operation("POST /v1/shelves:get", shelf).requestBody?.required).toBeUndefined();
    // One of several fields is enough.
    expect(operation("POST /v1/shelves/{shelf}:update", shelf).requestBody?.required).toBe(true);
  });

  test("makes the body required unless the path sets the field", () => {
    const legacy = createOpenApi([LegacySink], { info });
    expect(operation("POST /v1/legacies", legacy).requestBody?.required).toBe(true);
    expect(operation("PUT /v1/legacies/{name}", legacy).requestBody).not.toHaveProperty("required");
  });

  test("is required if it is a required field of proto2", () =>
    expect(createOpenApi([LegacySink], { info }).components?.schemas?.["Legacy"]?.["required"]).toEqual(["name"]));
});

test.each([
  ["GET /v1/query", { procedure: "/kitchensink.v1.KitchenSink/Query", path: "/v1/query" }],
  ["GET /v1/customName/{odd_name}", { path: "/v1/customName/{customName}" }],
  ["GET /v1/shelves/{shelf}/books/{book}", { path: "/v1/{fString=shelves/*/books/*}" }],
  ["PATCH /v1/body/int64", { path: "/v1/body/int64", body: "fInt64" }],
  ["POST /v1/sinks", { body: "*" }],
])("the extension x-rpc of an operation at %s contains procedure, path and body in JSON names", (at, want) => {
  expect(operation(at)["x-rpc"]).toMatchObject(want);
});

test("the extension x-rpc of an operation contains the tool's name if the RPC is an MCP tool", () => {
  const { paths } = describeSink({ mcp: createMcp({ tools: ({ name }) => name === "Query" && { name: "query" } }) });
  expect(paths["/v1/query"]?.get?.["x-rpc"].tool).toBe("query");
  expect(JSON.stringify(paths).split('"tool":')).toHaveLength(2);
});

test("a NullValue field's schema is null instead of an enum", () =>
  expect(document.components?.schemas?.["Sink"]).toHaveProperty("properties.nullValue", { const: null }));

test("a NullValue parameter's schema is the enum", () => {
  const parameter = operation("GET /v1/query").parameters?.find(({ name }) => name === "nullValue");
  expect(parameter?.schema).toEqual({ $ref: "#/components/schemas/NullValue" });
});

const enumsOf = (schemas: unknown): unknown => JSON.stringify(schemas).match(/"enum":\[[^\]]*/g);

test("64-bit integers and their wrappers may be numbers with int64Numbers", () => {
  const rest = { service: () => ({ int64Numbers: true }) };
  const { components } = createOpenApi([KitchenSink], { info, rest });
  expect(enumsOf(components)).toEqual(enumsOf(createOpenApi([KitchenSink], { info }).components));
  const sink = components?.schemas?.["Sink"];
  const numberOrText = expect.objectContaining({ type: ["integer", "string"], format: "int64" });
  for (const name of ["fInt64", "wInt64"]) expect(sink).toHaveProperty(`properties.${name}`, numberOrText);
});

test("64-bit integers may be numbers if one of two services sets int64Numbers", () => {
  const rest: GatewayOptions["rest"] = { service: ({ typeName }) => ({ int64Numbers: typeName === Shelves.typeName }) };
  const { components } = createOpenApi([Shelves, OrderService], { info, rest });
  expect(components?.schemas?.["Shelf"]).toHaveProperty("properties.widthMm.type", ["integer", "string"]);
});

test("bindings that OpenAPI cannot describe are omitted and passed to onOmitted", () =>
  expect(omitted).toEqual([
    "GET /v1/match/{f_string}: OpenAPI cannot distinguish it from the operation at /v1/match/{f_string}",
    "PROPFIND /v1/custom/{f_string}: OpenAPI 3.1 cannot describe this HTTP method; 3.2 can",
  ]));

test("query parameters of all operations count toward the document's limit", () => {
  const count = maxDocumentFields / maxOperationFields;
  const additionalBindings = Array.from(
    { length: count },
    (_, at) => ({ pattern: { case: "get", value: `/orders/${at}` } }) as const,
  );
  const rule = { ...getRule("orders.v1.OrderService.DeleteOrder", "/orders"), additionalBindings };
  const { paths } = describeOrders({
    rest: { rules: [rule] },
    // With this comment, one field uses the whole limit of an operation.
    comments: new Map([["orders.v1.DeleteOrderRequest.id", "c".repeat(100 * (maxOperationFields - 1))]]),
  });
  const withParameters = Object.values(paths).filter(({ get }) => get?.parameters !== undefined);
  expect([Object.keys(paths).length, withParameters.length]).toEqual([count + 1, count]);
});

test("the response of a server stream is described for each content type", () => {
  const rules = [{ selector: "grpc.health.v1.Health.Watch", pattern: { case: "get", value: "/watch" } }] as const;
  const { paths } = createOpenApi([Health], { info, rest: { rules } });
  const message = { $ref: "#/components/schemas/HealthCheckResponse" };
  expect(paths["/watch"]?.get?.responses["200"]?.content).toEqual({
    "application/x-ndjson": { schema: message },
    "application/jsonl": { schema: message },
    "application/json": { schema: { type: "array", items: message } },
    "text/event-stream": { schema: message },
  });
});

test("with streamInResults, a server stream's messages are described in wrappers", () => {
  const selector = "grpc.health.v1.Health.Watch";
  const rest: GatewayOptions["rest"] = {
    rules: [{ selector, pattern: { case: "get", value: "/health" } }],
    service: ({ typeName }) => ({ streamInResults: typeName === Health.typeName }),
    // Options that a description does not need are accepted, too.
    errorRecord: () => ({ httpStatus: 400, body: null }),
  };
  const message = { $ref: "#/components/schemas/HealthCheckResponse" };
  for (const openapi of ["3.1.0", "3.2.0"] as const) {
    const content = createOpenApi([Health], { openapi, info, rest }).paths["/health"]?.get?.responses["200"]?.content;
    const want = ["application/json", "application/x-ndjson", "application/jsonl", "text/event-stream"];
    expect(Object.keys(content ?? {})).toEqual(want);
    const media = content?.["application/json"];
    const line = openapi === "3.1.0" ? media?.schema : media?.itemSchema;
    expect(line).toMatchObject({ properties: { result: message, error: { type: "object" } }, maxProperties: 1 });
    expect(content?.["application/jsonl"]).toEqual(media);
    expect(content?.["text/event-stream"]).not.toHaveProperty("schema.properties.result");
  }
});

test("a message schema allows only one member of a oneof", () => {
  const schemas = document.components?.schemas ?? {};
  const dependent: Record<string, unknown> = Object(schemas["Sink"]?.["dependentSchemas"]);
  // The message has eight members.
  expect(Object.keys(dependent).length).toBe(7);
  expect(dependent["choiceStruct"]).toEqual({ propertyNames: { not: { enum: ["choiceBytes"] } } });
  expect(schemas["Nested"]).not.toHaveProperty("dependentSchemas");
  const { pattern, description } = Reflect.get(Object(schemas["Sink"]?.["properties"]), "mask");
  expect([description, pattern]).toEqual(["Field paths, separated by commas.", fieldMaskPattern]);
});

test("paths that differ only in variable names are one path item", () => {
  const rule = {
    selector: `${KitchenSink.typeName}.Root`,
    pattern: { case: "get" as const, value: "/ones/{f_string}" },
    additionalBindings: [
      { pattern: { case: "put" as const, value: "/ones/{f_int32}" } },
      { pattern: { case: "delete" as const, value: "/ones/{f_int64}" } },
    ],
  };
  const { paths } = createOpenApi([KitchenSink], { info, rest: { rules: [rule] } });
  const ones = Object.entries(paths).filter(([path]) => path.startsWith("/ones"));
  const names = ones.map(([path, item]) => [path, Object.keys(item), item.delete?.parameters?.[0]?.name]);
  expect(names).toEqual([["/ones/{f_string}", ["get", "put", "delete"], "f_string"]]);
});

test("the document omits an RPC that the option omit names", () => {
  const rule = { pattern: { case: "get", value: "/v1/{none}" } } as const;
  const selector = `${OrderService.typeName}.DeleteOrder`;
  const rest: GatewayOptions["rest"] = { rules: [{ selector, ...rule }], omit: [selector] };
  expect(createOpenApi([OrderService], { info, rest }).paths).toEqual({});
});

test("in OpenAPI 3.2, a stream is described by itemSchema", () => {
  const selector = `${GreenhouseService.typeName}.ControlClimate`;
  const rules = [{ selector, pattern: { case: "post", value: "/climate" }, body: "*" }] as const;
  const { openapi, paths } = createOpenApi([GreenhouseService], { openapi: "3.2.0", info, rest: { rules } });
  const sent = { $ref: "#/components/schemas/Reading" };
  const answered = { $ref: "#/components/schemas/Adjustment" };
  const lastEvent = { properties: { event: { enum: ["end", "error"] } }, required: ["event"] };
  const { requestBody, responses } = paths["/climate"]?.post ?? {};
  expect(openapi).toBe("3.2.0");
  const want = { "application/x-ndjson": { itemSchema: sent }, "application/jsonl": { itemSchema: sent } };
  expect(requestBody?.content).toEqual(want);
  expect(responses?.["200"]?.content).toMatchObject({
    "application/x-ndjson": { itemSchema: answered },
    "application/jsonl": { itemSchema: answered },
    "application/json": { schema: { type: "array", items: answered } },
    "text/event-stream": { itemSchema: { oneOf: [{ properties: { data: { contentSchema: answered } } }, lastEvent] } },
  });
  // RPCs without streams are described as before.
  expect(paths["/beds/{bed}:water"]).toEqual(
    createOpenApi([GreenhouseService], { info, rest: { rules } }).paths["/beds/{bed}:water"],
  );
});

const routes = compileRestRoutes(KitchenSink.methods);
// If two RPCs share a path, its GET is described as the first RPC but handled by the more specific one.
const operations = Object.entries(document.paths)
  .flatMap(([path, item]) => Object.entries(item).map(([method, { operationId }]) => ({ method, path, operationId })))
  .filter(({ operationId }) => operationId !== "matchRest");

test.each(operations)("$method $path of operation $operationId is routed to its RPC", (described) => {
  const found = routes.match(described.method.toUpperCase(), described.path.replaceAll(/\{[^}]*\}/g, "7"));
  const name = found.kind === "binding" ? found.binding.method.localName : found.kind;
  expect(name).toBe(described.operationId.replace(/_\d+$/, ""));
});
