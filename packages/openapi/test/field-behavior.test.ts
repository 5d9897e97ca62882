import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { FieldBehavior, field_behavior } from "../../protobuf/src/gen/google/api/field_behavior_pb.ts";
import { createOpenApi } from "../src/index.ts";

/** What annotates the field `text`. */
interface Annotations {
  readonly behaviors?: readonly FieldBehavior[];
  readonly deprecated?: boolean;
  /** How many fields its oneof has; by default it is in none. */
  readonly oneofFields?: number;
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
  const file = create(FileDescriptorProtoSchema, {
    name: "notes.proto",
    package: "notes",
    syntax: "proto3",
    messageType: [{ name: "Note", field: [text, ...others], oneofDecl: oneofFields > 0 ? [{ name: "choice" }] : [] }],
    service: [
      {
        name: "Notes",
        method: ["Find", "Add"].map((name) => ({ name, inputType: ".notes.Note", outputType: ".notes.Note" })),
      },
    ],
  });
  const service = createFileRegistry(file, () => undefined).getService("notes.Notes");
  if (service === undefined) throw new Error("no service");
  const rules = [
    { selector: "notes.Notes.Find", pattern: { case: "get", value: "/notes" } },
    { selector: "notes.Notes.Add", pattern: { case: "post", value: "/notes" }, body: "*" },
  ] as const;
  const { paths, components } = createOpenApi([service], { info: { title: "Notes", version: "1" }, rest: { rules } });
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

test.each<{ readonly name: string; readonly annotations: Annotations; readonly want: object }>([
  { name: "no annotation", annotations: {}, want: { parameter: {}, schema: { isRequired: false } } },
  {
    name: "REQUIRED",
    annotations: { behaviors: [REQUIRED] },
    want: { parameter: { required: true }, schema: { isRequired: false } },
  },
  {
    name: "REQUIRED and OUTPUT_ONLY",
    annotations: { behaviors: [REQUIRED, OUTPUT_ONLY] },
    want: { parameter: undefined, schema: { isRequired: false, readOnly: true } },
  },
  {
    name: "REQUIRED and INPUT_ONLY",
    annotations: { behaviors: [REQUIRED, INPUT_ONLY] },
    want: { parameter: { required: true }, schema: { isRequired: false, writeOnly: true } },
  },
  {
    name: "REQUIRED in a oneof of two fields",
    annotations: { behaviors: [REQUIRED], oneofFields: 2 },
    want: { parameter: {}, schema: { isRequired: false } },
  },
  {
    name: "REQUIRED in a oneof of one field",
    annotations: { behaviors: [REQUIRED], oneofFields: 1 },
    want: { parameter: { required: true }, schema: { isRequired: true } },
  },
  {
    name: "deprecated and REQUIRED",
    annotations: { behaviors: [REQUIRED], deprecated: true },
    want: { parameter: { required: true, deprecated: true }, schema: { isRequired: false, deprecated: true } },
  },
])("a field with $name is described in the query and the schema", ({ annotations, want }) => {
  expect(described(annotations)).toEqual(want);
});

test("a REQUIRED, OUTPUT_ONLY field in a oneof of one is optional", () => {
  expect(described({ behaviors: [REQUIRED, OUTPUT_ONLY], oneofFields: 1 })).toMatchObject({
    schema: { isRequired: false },
  });
});
