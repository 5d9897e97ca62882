import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FieldOptionsSchema,
  file_google_protobuf_wrappers, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
// oxfmt-ignore
import { field_info, FieldInfo_Format as Format, FieldInfoSchema
} from "../../src/protobuf/gen/google/api/field_info_pb.ts";
import { createMessageSchema, createOpenApi } from "../../src/openapi/index.ts";

// The formats in google.api.field_info (AIP-202), in OpenAPI and in tool schemas.

const uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
const eitherAddress = { anyOf: [{ format: "ipv4" }, { format: "ipv6" }] };
const stringValue = { type: Type.MESSAGE, typeName: ".google.protobuf.StringValue" };

interface FieldCase {
  readonly name: string;
  readonly format: Format;
  readonly field?: object;
  readonly schema: object;
  readonly example: unknown;
}

// oxfmt-ignore
const cases: readonly FieldCase[] = [
  { name: "uuid", format: Format.UUID4, schema: { type: "string", format: "uuid" }, example: uuid },
  { name: "ipv4", format: Format.IPV4, schema: { type: "string", format: "ipv4" }, example: "192.0.2.1" },
  { name: "ipv6", format: Format.IPV6, schema: { type: "string", format: "ipv6" }, example: "2001:db8::1" },
  { name: "address", format: Format.IPV4_OR_IPV6, schema: { type: "string", ...eitherAddress }, example: "192.0.2.1" },
  { name: "unspecified", format: Format.FORMAT_UNSPECIFIED, schema: { type: "string" }, example: "text" },
  { name: "number", format: Format.UUID4, field: { type: Type.INT32 }, schema: { type: "integer", format: "int32" },
    example: 7 },
  { name: "list", format: Format.UUID4, field: { label: Label.REPEATED },
    schema: { type: "array", items: { type: "string", format: "uuid" } }, example: [uuid] },
  { name: "wrapper", format: Format.IPV4, field: stringValue, schema: { type: "string", format: "ipv4" },
    example: "192.0.2.1" },
];

const file = create(FileDescriptorProtoSchema, {
  name: "formats.proto",
  package: "formats.v1",
  syntax: "proto3",
  dependency: ["google/protobuf/wrappers.proto"],
  messageType: [
    {
      name: "Host",
      field: cases.map(({ name, format, field }, at) => {
        const options = create(FieldOptionsSchema);
        setExtension(options, field_info, create(FieldInfoSchema, { format }));
        return { name, jsonName: name, number: at + 1, label: Label.OPTIONAL, type: Type.STRING, options, ...field };
      }),
    },
  ],
  service: [
    { name: "Hosts", method: [{ name: "Add", inputType: ".formats.v1.Host", outputType: ".formats.v1.Host" }] },
  ],
});
const registry = createFileRegistry(file, () => file_google_protobuf_wrappers.proto);
const host = registry.getMessage("formats.v1.Host");
const hosts = registry.getService("formats.v1.Hosts");
if (host === undefined || hosts === undefined) throw new Error("the descriptors lack a type");

function describe(pattern: { readonly case: "get" | "post"; readonly value: string }, body: string): object {
  const rules = [{ selector: "formats.v1.Hosts.Add", pattern, body }];
  return createOpenApi(hosts === undefined ? [] : [hosts], { info: { title: "t", version: "1" }, rest: { rules } });
}

const posted = describe({ case: "post", value: "/hosts" }, "*");
const asked = describe({ case: "get", value: "/hosts/{uuid}" }, "");
const style = { comments: new Map(), useProtoFieldName: false };
const input = createMessageSchema(host, { ...style, direction: "input" }).schema;
const output = createMessageSchema(host, { ...style, direction: "output" }).schema;

test.each(cases)("the field $name has the format and example of its field_info", ({ name, schema, example }) => {
  expect(posted).toHaveProperty(["components", "schemas", "Host", "properties", name], schema);
  expect(posted).toHaveProperty(["components", "schemas", "Host", "examples", 0, name], example);
});

test("path and query parameters have the format of their field_info", () => {
  const { parameters } = Object(asked).paths["/hosts/{uuid}"].get;
  expect(parameters).toContainEqual(
    expect.objectContaining({ name: "uuid", in: "path", schema: { type: "string", format: "uuid" } }),
  );
  expect(parameters).toContainEqual({ name: "address", in: "query", schema: { type: "string", ...eitherAddress } });
});

test.each(cases.filter(({ name }) => name !== "number"))(
  "a tool's input schema has the field $name with its format",
  (field) => expect(input).toHaveProperty(["properties", field.name], field.schema),
);

test("a tool's output schema has no formats", () => {
  expect(JSON.stringify(output)).not.toMatch(/format|anyOf/);
  expect(output).toHaveProperty(["properties", "address"], { type: "string" });
});
