import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FileDescriptorProtoSchema
} from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/create-open-api.ts";
import type { OpenApiSchema } from "../../src/openapi/open-api-document.ts";
import { messageIn, serviceIn, stringField } from "../../../testing/src/gateway/file-init.ts";
import { KitchenSink, SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createMessageSchema } from "../../src/openapi/message-schema.ts";

// Schemas of types that several upstreams define.

/** Returns a service whose RPC returns a message with this name, which has one string field and may be nested. */
function serviceReturning(typeName: string, serviceName: string, fieldName: string): DescService {
  const [, packageName = "", outer, name = ""] = /^(?:([a-z\d.]+)\.)?(?:(\w+)\.)?(\w+)$/.exec(typeName) ?? [];
  const message = { name, field: [stringField(fieldName, 1)] };
  const messageType = [outer === undefined ? message : { name: outer, nestedType: [message] }];
  const method = [{ name: "Get", inputType: `.${typeName}`, outputType: `.${typeName}` }];
  const parts = { messageType, service: [{ name: serviceName, method }] };
  const file = { name: "definition.proto", package: packageName, syntax: "proto3", ...parts };
  return serviceIn(file, packageName === "" ? serviceName : `${packageName}.${serviceName}`);
}

test.each([
  ["shop.v1.Order", "Order"],
  ["shop.v1.Order_Line.Gift_Wrap", "Order_Line.Gift_Wrap"],
  ["Order", "Order"],
  ["google.rpc.Status", "Status"],
])("three definitions of %s have separate schemas, the first with the name %s", (typeName, schemaName) => {
  const names = ["one", "two", "three"];
  const services = names.map((name) => serviceReturning(typeName, `Service${name}`, name));
  const rules = services.map((service, at) => ({
    selector: `${service.typeName}.Get`,
    pattern: { case: "get", value: `/${names[at]}` } as const,
  }));
  const { paths, components } = createOpenApi(services, { info: { title: "", version: "" }, rest: { rules } });
  const fieldsIn = (path: string, status: string): readonly string[] => {
    const { schema = {} } = paths[path]?.get?.responses[status]?.content?.["application/json"] ?? {};
    const found = Object.entries(components?.schemas ?? {}).find(
      ([name]) => schema["$ref"] === `#/components/schemas/${name}`,
    );
    const { properties }: OpenApiSchema = found?.[1] ?? {};
    return Object.keys(Object(properties));
  };
  expect(names.map((name) => fieldsIn(`/${name}`, "200"))).toEqual(names.map((name) => [name]));
  expect(Object.keys(Object(components?.schemas?.[schemaName]?.["properties"]))).toEqual(["one"]);
  expect(fieldsIn("/one", "4XX")).toEqual(["code", "status", "message", "details"]);
});

// Which objects allow other properties, and which keys maps have.

const info = { title: "Test", version: "1" };

const schemasOf = (rest: OpenApiOptions["rest"] = {}): Readonly<Record<string, OpenApiSchema>> =>
  createOpenApi([KitchenSink, Shelves, LegacySink], { info, rest }).components?.schemas ?? {};

const strict = schemasOf();

test.each([
  { name: "allows no additional properties for a request message", message: "Sink", want: false },
  { name: "allows no additional properties for a message inside a request", message: "Nested", want: false },
  { name: "allows additional properties for a response message", message: "Echo", want: undefined },
  { name: "allows additional properties for a message with extensions", message: "Legacy", want: undefined },
])("a message schema $name", ({ message, want }) => {
  const schema = strict[message];
  expect(schema).toHaveProperty("properties");
  expect(schema?.["additionalProperties"]).toBe(want);
});

test("a message schema allows additional properties if the service ignores unknown fields", () => {
  const schemas = schemasOf({ service: ({ typeName }) => ({ lenient: typeName === KitchenSink.typeName }) });
  expect(schemas["Sink"]).not.toHaveProperty("additionalProperties");
  expect(schemas["Shelf"]).toHaveProperty("additionalProperties", false);
});

/** Returns the schemas of a message that the services notes.A and notes.B read, and that contains another message. */
function sharedSchemas(rest: OpenApiOptions["rest"]): Readonly<Record<string, OpenApiSchema>> {
  const note = { name: "note", jsonName: "note", number: 1, typeName: ".notes.Part" };
  const field = { ...note, type: FieldDescriptorProto_Type.MESSAGE, label: FieldDescriptorProto_Label.OPTIONAL };
  const rpc = { name: "Add", inputType: ".notes.Note", outputType: ".notes.Note" };
  const service = ["A", "B"].map((name) => ({ name, method: [rpc] }));
  const parts = { messageType: [{ name: "Part" }, { name: "Note", field: [field] }], service };
  const file = create(FileDescriptorProtoSchema, { name: "notes.proto", package: "notes", syntax: "proto3", ...parts });
  const registry = createFileRegistry(file, () => undefined);
  const services = ["A", "B"].map((name) => registry.getService(`notes.${name}`) ?? expect.unreachable());
  const rules = services.map(({ typeName }) => {
    return { selector: `${typeName}.Add`, pattern: { case: "post", value: `/${typeName}` } as const, body: "*" };
  });
  return createOpenApi(services, { info, rest: { ...rest, rules } }).components?.schemas ?? {};
}

test.each([
  { name: "no additional properties if both services refuse unknown fields", lenient: [] as string[], want: false },
  { name: "additional properties if the first service ignores unknown fields", lenient: ["notes.A"], want: undefined },
  { name: "additional properties if the second service ignores unknown fields", lenient: ["notes.B"], want: undefined },
])("the schema of a message in two services allows $name in requests", ({ lenient, want }) => {
  const schemas = sharedSchemas({ service: ({ typeName }) => ({ lenient: lenient.includes(typeName) }) });
  const [outer, inner] = [schemas["Note"], schemas["Part"]].map((schema) => schema?.["additionalProperties"]);
  expect([outer, inner]).toEqual([want, want]);
});

test.each([
  ["allows no additional properties", {}, false],
  ["allows additional properties with sameValueAsPath", { service: () => ({ sameValueAsPath: true }) }, undefined],
])("the schema of a body without the path's fields %s", (_name, rest, want) => {
  const { paths } = createOpenApi([KitchenSink], { info, rest });
  const schema = paths["/v1/sinks/{f_int64}"]?.put?.requestBody?.content["application/json"]?.schema;
  expect(schema).toHaveProperty("properties");
  expect(schema?.["additionalProperties"]).toBe(want);
});

const ofInt64 = expect.stringContaining("-9223372036854775808");

test.each([
  { name: "bool keys must be true or false", field: "counts", want: { enum: ["true", "false"] } },
  { name: "int64 keys must be decimal integers in range", field: "nestedById", want: { pattern: ofInt64 } },
  { name: "string keys are not restricted", field: "labels", want: undefined },
])("in a map's schema, $name", ({ field, want }) => {
  expect(Reflect.get(Object(strict["Sink"]?.["properties"]), field).propertyNames).toEqual(want);
});

// Schemas of one message, as tools describe their inputs and outputs.

const int32 = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const anyDouble = { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] };

describe.each(["input", "output"] as const)("the %s schema", (direction) => {
  const options = { comments: new Map(), useProtoFieldName: false, direction };
  const { properties } = createMessageSchema(SinkSchema, options).schema;

  test.each([
    { name: "int32 fields", field: "fInt32", want: int32 },
    { name: "int32 map values", field: "counts.additionalProperties", want: int32 },
    { name: "double fields", field: "fDouble", want: direction === "input" ? { type: "number" } : anyDouble },
    { name: "doubles in a list", field: "doubles.items", want: direction === "input" ? { type: "number" } : anyDouble },
  ])("describes $name by their JSON types", ({ field, want }) => expect(properties).toHaveProperty(field, want));
});

describe("the schema of a message", () => {
  const options = { comments: new Map(), useProtoFieldName: false, direction: "input" } as const;

  test.each([
    { count: 2_000, isTruncated: false },
    { count: 2_001, isTruncated: true },
  ])("with $count fields lists at most 2,000, and isTruncated is $isTruncated", ({ count, isTruncated }) => {
    const field = Array.from({ length: count }, (_, at) => stringField(`text${at}`, at + 1));
    const file = { name: "wide.proto", package: "wide", syntax: "proto3", messageType: [{ name: "Wide", field }] };
    const created = createMessageSchema(messageIn(file, "wide.Wide"), options);
    expect(created.isTruncated).toBe(isTruncated);
    expect(Object.keys(Object(created.schema["properties"]))).toHaveLength(2_000);
    expect("$comment" in created.schema).toBe(isTruncated);
  });

  test("with a comment of a megabyte lists all fields", () => {
    const field = [stringField("first", 1), stringField("second", 2)];
    const file = { name: "wide.proto", package: "wide", syntax: "proto3", messageType: [{ name: "Wide", field }] };
    const comments = new Map([["wide.Wide.first", "word ".repeat(200_000)]]);
    const { schema, isTruncated } = createMessageSchema(messageIn(file, "wide.Wide"), { ...options, comments });
    expect([Object.keys(Object(schema["properties"])), isTruncated]).toEqual([["first", "second"], false]);
  });

  test("with 600 fields and long comments lists its own fields before those of nested messages", () => {
    const own = Array.from({ length: 60 }, (_, at) => stringField(`own${at}`, at + 2));
    const nested = Array.from({ length: 540 }, (_, at) => stringField(`nested${at}`, at + 1));
    const next = { name: "next", jsonName: "next", number: 1, type: 11, typeName: ".wide.Nested" };
    const messageType = [
      { name: "Wide", field: [next, ...own] },
      { name: "Nested", field: nested },
    ];
    const wide = messageIn({ name: "wide.proto", package: "wide", syntax: "proto3", messageType }, "wide.Wide");
    const comments = new Map(
      [...own, ...nested].flatMap(({ name = "" }) =>
        ["Wide", "Nested"].map((message) => [`wide.${message}.${name}`, "word ".repeat(100)] as const),
      ),
    );
    const { schema, isTruncated } = createMessageSchema(wide, { ...options, comments });
    expect([isTruncated, Object.keys(Object(schema["properties"])).length]).toEqual([true, 61]);
    const inner = Object.keys(Object(Reflect.get(Object(schema["$defs"]), "Nested").properties)).length;
    expect(inner).toBeGreaterThan(200);
    expect(inner).toBeLessThan(540);
  });
});
