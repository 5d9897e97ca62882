import { create, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { type DescriptorProtoSchema, FieldDescriptorProto_Label, FieldDescriptorProto_Type, FieldOptionsSchema
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { FieldBehavior, field_behavior } from "../../src/protobuf/gen/google/api/field_behavior_pb.ts";
import { createOpenApi, type OpenApiDocument } from "../../src/openapi/index.ts";
import { serviceIn } from "../../../testing/src/gateway/file-init.ts";

/** What annotates the field `text`. */
interface Annotations {
  readonly behaviors?: readonly FieldBehavior[];
  readonly deprecated?: boolean;
  /** How many fields its oneof has; by default it is in none. */
  readonly oneofFields?: number;
}

/** Describes the service `notes.Notes`, at `GET /notes` and `POST /notes`. Its RPCs receive and return a `Note`. */
function documentOf(
  messageType: MessageInitShape<typeof DescriptorProtoSchema>[],
  clientStreaming: boolean = false,
): OpenApiDocument {
  const rpc = { inputType: ".notes.Note", outputType: ".notes.Note" };
  const method = [
    { ...rpc, name: "Find" },
    { ...rpc, name: "Add", clientStreaming },
  ];
  const file = { name: "notes.proto", package: "notes", syntax: "proto3", messageType };
  const notes = serviceIn({ ...file, service: [{ name: "Notes", method }] }, "notes.Notes");
  const rules = [
    { selector: "notes.Notes.Find", pattern: { case: "get", value: "/notes" } },
    { selector: "notes.Notes.Add", pattern: { case: "post", value: "/notes" }, body: "*" },
  ] as const;
  return createOpenApi([notes], { info: { title: "Notes", version: "1" }, rest: { rules } });
}

/** Returns a field's description as a query parameter, and in a message's schema. */
function described({ behaviors = [], deprecated = false, oneofFields = 0 }: Annotations): object {
  const options = create(FieldOptionsSchema, deprecated ? { deprecated } : {});
  if (behaviors.length > 0) setExtension(options, field_behavior, [...behaviors]);
  const type = FieldDescriptorProto_Type.STRING;
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const inOneof = oneofFields > 0 ? { oneofIndex: 0 } : {};
  const text = { name: "text", jsonName: "text", number: 1, type, label, options, ...inOneof };
  const others = Array.from({ length: Math.max(0, oneofFields - 1) }, (_, at) => {
    return { name: `other${at}`, jsonName: `other${at}`, number: at + 2, type, label, ...inOneof };
  });
  const { paths, components } = documentOf([
    { name: "Note", field: [text, ...others], oneofDecl: oneofFields > 0 ? [{ name: "choice" }] : [] },
  ]);
  const { parameters = [] } = paths["/notes"]?.get ?? {};
  const { required = [], properties } = Object(components?.schemas?.["Note"]);
  const parameter = parameters.find(({ name }) => name === "text");
  const { type: _type, ...keywords } = properties.text;
  return {
    parameter: parameter && { required: parameter.required, deprecated: parameter.deprecated },
    schema: { ...keywords, isRequired: required.includes("text") },
  };
}

const { REQUIRED, OUTPUT_ONLY, INPUT_ONLY } = FieldBehavior;

test.each<[name: string, annotations: Annotations, want: object]>(
  // oxfmt-ignore
  [
    ["no annotation", {}, { parameter: {}, schema: { isRequired: false } }],
    ["OUTPUT_ONLY", { behaviors: [OUTPUT_ONLY] }, { parameter: undefined, schema: { isRequired: false, readOnly: true } }],
    ["INPUT_ONLY", { behaviors: [INPUT_ONLY] }, { parameter: {}, schema: { isRequired: false, writeOnly: true } }],
    ["deprecated", { deprecated: true },
      { parameter: { deprecated: true }, schema: { isRequired: false, deprecated: true } }],
    ["REQUIRED", { behaviors: [REQUIRED] }, { parameter: { required: true }, schema: { isRequired: false } }],
    ["REQUIRED and OUTPUT_ONLY", { behaviors: [REQUIRED, OUTPUT_ONLY] },
      { parameter: undefined, schema: { isRequired: false, readOnly: true } }],
    ["REQUIRED and INPUT_ONLY", { behaviors: [REQUIRED, INPUT_ONLY] },
      { parameter: { required: true }, schema: { isRequired: false, writeOnly: true } }],
    ["REQUIRED in a oneof of two fields", { behaviors: [REQUIRED], oneofFields: 2 },
      { parameter: {}, schema: { isRequired: false } }],
    ["REQUIRED in a oneof of one field", { behaviors: [REQUIRED], oneofFields: 1 },
      { parameter: { required: true }, schema: { isRequired: true } }],
    ["deprecated and REQUIRED", { behaviors: [REQUIRED], deprecated: true },
      { parameter: { required: true, deprecated: true }, schema: { isRequired: false, deprecated: true } }],
  ],
)("createOpenApi describes a field with %s as parameter and as property", (_name, annotations, want) => {
  expect(described(annotations)).toEqual(want);
});

test("a field with OUTPUT_ONLY is optional despite REQUIRED in a oneof", () =>
  expect(described({ behaviors: [REQUIRED, OUTPUT_ONLY], oneofFields: 1 })).toMatchObject({
    schema: { isRequired: false },
  }));

/** Describes `/notes` of {@link documentOf}. Each message has one field. */
function describeNotes(
  messages: Readonly<Record<string, { readonly field: string; readonly type?: string; readonly isRequired: boolean }>>,
  { clientStreaming = false } = {},
): OpenApiDocument["paths"][string] {
  const required = create(FieldOptionsSchema);
  setExtension(required, field_behavior, [REQUIRED]);
  // oxfmt-ignore
  const messageType = Object.entries(messages).map(([name, { field, type, isRequired }]) => ({
    name,
    field: [{ name: field, jsonName: field, number: 1, label: FieldDescriptorProto_Label.OPTIONAL,
        ...(type === undefined ? { type: FieldDescriptorProto_Type.STRING } : { type: FieldDescriptorProto_Type.MESSAGE,
            typeName: `.notes.${type}` }), ...(isRequired && { options: required }) }],
  }));
  return documentOf(messageType, clientStreaming).paths["/notes"] ?? {};
}

/** Describes the parameter for a REQUIRED field in two messages. */
function requiredInNested(isOuterRequired: boolean, isInnerRequired: boolean): boolean | undefined {
  const { get } = describeNotes({
    Note: { field: "outer", type: "Outer", isRequired: isOuterRequired },
    Outer: { field: "inner", type: "Inner", isRequired: isInnerRequired },
    Inner: { field: "text", isRequired: true },
  });
  expect(get?.parameters).toMatchObject([{ name: "outer.inner.text" }]);
  return get?.parameters?.[0]?.required;
}

test("a REQUIRED field in REQUIRED messages is a required parameter", () =>
  expect(requiredInNested(true, true)).toBe(true));

test.each(["outer", "inner"])("a REQUIRED field in an optional %s message is an optional parameter", (optional) => {
  expect(requiredInNested(optional === "inner", optional === "outer")).toBe(undefined);
});

test("a unary request's body is required if it has a REQUIRED field", () =>
  expect(describeNotes({ Note: { field: "text", isRequired: true } }).post?.requestBody).toMatchObject({
    required: true,
  }));

test.each([
  { name: "of a unary request without a REQUIRED field", isRequired: false, clientStreaming: false },
  { name: "of a client stream with a REQUIRED field", isRequired: true, clientStreaming: true },
])("a body $name is optional", ({ isRequired, clientStreaming }) => {
  const { post } = describeNotes({ Note: { field: "text", isRequired } }, { clientStreaming });
  expect(post?.requestBody).toHaveProperty("content");
  expect(post?.requestBody).not.toHaveProperty("required");
});
