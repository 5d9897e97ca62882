import { create, createFileRegistry } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FileDescriptorProtoSchema
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createOpenApi, type OpenApiOptions } from "../../src/openapi/create-open-api.ts";
import type { OpenApiSchema } from "../../src/openapi/open-api-document.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

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
  const file = create(FileDescriptorProtoSchema, {
    name: "notes.proto",
    package: "notes",
    syntax: "proto3",
    messageType: [{ name: "Part" }, { name: "Note", field: [field] }],
    service: ["A", "B"].map((name) => ({ name, method: [rpc] })),
  });
  const registry = createFileRegistry(file, () => undefined);
  const services = ["A", "B"].map((name) => registry.getService(`notes.${name}`) ?? expect.unreachable());
  const rules = services.map(({ typeName }) => ({
    selector: `${typeName}.Add`,
    pattern: { case: "post", value: `/${typeName}` } as const,
    body: "*",
  }));
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

test.each([
  { name: "bool keys must be true or false", field: "counts", want: { enum: ["true", "false"] } },
  {
    name: "int64 keys must be decimal integers in range",
    field: "nestedById",
    want: { pattern: expect.stringContaining("-9223372036854775808") },
  },
  { name: "string keys are not restricted", field: "labels", want: undefined },
])("in a map's schema, $name", ({ field, want }) => {
  expect(Reflect.get(Object(strict["Sink"]?.["properties"]), field).propertyNames).toEqual(want);
});
