import { create, type DescMessage, type JsonObject, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FieldOptionsSchema, FileDescriptorSetSchema
} from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { createOpenApi } from "../../src/openapi/index.ts";
import { field_behavior, FieldBehavior } from "../../src/protobuf/gen/google/api/field_behavior_pb.ts";
import { createExample } from "../../src/openapi/example.ts";
import { maxDocumentFields, FieldBudget } from "../../src/openapi/field-budget.ts";
import { Schemas } from "../../src/openapi/schemas.ts";
import type { OpenApiParameter } from "../../src/openapi/open-api-document.ts";
import { KitchenSink, SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySchema, LegacySink } from "../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { messageIn } from "../../../testing/src/gateway/file-init.ts";
import { startKitchenSink } from "../../../testing/src/gateway/kitchen-sink.ts";

/** Messages that each require the next one, and one with some strings. Optionally the last requires the first. */
function chainOf(names: readonly string[], isLoop: boolean, sides: readonly string[] = ["left", "right"]): DescMessage {
  const options = create(FieldOptionsSchema);
  setExtension(options, field_behavior, [FieldBehavior.REQUIRED]);
  const { MESSAGE, STRING } = FieldDescriptorProto_Type;
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const file = {
    name: "chain.proto",
    package: "chain",
    syntax: "proto3",
    messageType: names.map((name, at) => {
      const next = names[at + 1] ?? (isLoop ? names[0] : undefined);
      const link = { name: "next", number: 1, type: MESSAGE, label, typeName: `.chain.${next}`, options };
      const texts = sides.map((text, index) => {
        return { name: text, number: index + 2, type: STRING, label, oneofIndex: 0, options };
      });
      return { name, field: [...(next === undefined ? [] : [link]), ...texts], oneofDecl: [{ name: "side" }] };
    }),
  };
  return messageIn(file, `chain.${names[0]}`);
}

const services = [KitchenSink, Shelves, LegacySink];
const { paths, components } = createOpenApi(services, { info: { title: "Test", version: "1" } });

// A body's example. A reference's example is at the message to which it refers.
function exampleOf(schema: Readonly<Record<string, unknown>> = {}): unknown {
  const name = String(schema["$ref"]).split("/").at(-1) ?? "";
  const { examples } = components?.schemas?.[name] ?? schema;
  return Array.isArray(examples) ? examples[0] : undefined;
}

const requiredOf = (parameters: readonly OpenApiParameter[]): string =>
  parameters.flatMap(({ in: place, required, name }) => (place === "query" && required ? [`${name}=7`] : [])).join("&");

const bodies = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, { parameters = [], requestBody }]) => {
    const example = exampleOf(requestBody?.content["application/json"]?.schema);
    return example === undefined
      ? []
      : [{ method: method.toUpperCase(), path, query: requiredOf(parameters), body: JSON.stringify(example) }];
  }),
);

const gateway = await startKitchenSink();
afterAll(() => gateway[Symbol.asyncDispose]());

test.each(bodies)(
  "the body example for $method $path is accepted by the gateway",
  async ({ method, path, query, body }) => {
    const url = `http://gateway${path.replaceAll(/\{[^}]*\}/g, "7")}?${query}`;
    const init: RequestInit = { method, headers: { "content-type": "application/json" }, body };
    const response = await gateway.fetch(new Request(url, init));
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  },
);

test("createOpenApi adds examples to JSON request bodies", () => expect(bodies.length).toBeGreaterThan(12));

function exampleOfMessage(desc: DescMessage): JsonObject | undefined {
  const example = createExample(desc, {
    nameOf: ({ jsonName, name }) => jsonName || name,
    total: new FieldBudget(maxDocumentFields),
  });
  return example === "too large" ? undefined : example;
}

describe("an example", () => {
  const sink = exampleOfMessage(SinkSchema);

  test.each([
    ["a string for a 64-bit integer", "fInt64", "7"],
    ["an array for a list", "tags", ["text"]],
    ["an object for a map", "nestedById", { "7": { text: "text", number: "7", flag: true, tags: ["text"] } }],
    ["the first specified value of an enum", "fEnum", "COLOR_RED"],
    ["a plain value for a wrapper", "wString", "text"],
    ["a string for a Duration", "duration", "1.5s"],
    ["a message without its recursive field", "nested", { text: "text", number: "7", flag: true, tags: ["text"] }],
    ["the first member of a oneof", "choiceText", "text"],
    ["no message inside a message of the same type", "child", undefined],
    ["no Any", "any", undefined],
  ])("has %s", (_, name, want) => expect(sink?.[name]).toEqual(want));

  test("has only the first of eight members of a oneof", () =>
    expect(Object.keys(sink ?? {}).filter((name) => name.startsWith("choice"))).toEqual(["choiceText"]));

  test("contains messages three levels deep", () => {
    const example = exampleOfMessage(FileDescriptorSetSchema);
    expect(example).toMatchObject({ file: [{ messageType: [{ field: [{ name: "text" }] }] }] });
    expect(example).not.toHaveProperty("file.0.messageType.0.field.0.options");
  });

  test("contains required fields at every depth", () => {
    const text = JSON.stringify(exampleOfMessage(chainOf(["One", "Two", "Three", "Four", "Five", "Six"], false)));
    expect(text.split('"left":"text"').length - 1).toBe(6);
    expect(exampleOfMessage(chainOf(["One", "Two"], true))).toBeUndefined();
  });

  test("contains at most one member of a oneof", () => {
    const chain = chainOf(["One", "Two"], false);
    const empty = { comments: new Map(), abridged: new Set<never>(), closed: new Set<never>() };
    const schemas = new Schemas({
      ...empty,
      useProtoFieldName: true,
      int64Numbers: false,
      referencePrefix: "#/$defs/",
    });
    const { required, examples } = schemas.ofObject(chain);
    const want = { required: ["next"], examples: [{ next: { left: "text" }, left: "text" }] };
    expect({ required, examples }).toEqual(want);
    expect(schemas.ofObject(chainOf(["One", "Two"], true))).not.toHaveProperty("examples");
    // None of the others could replace it.
    expect(schemas.ofObject(chainOf(["One"], false, ["left"]))).toMatchObject({ required: ["left"] });
  });

  test("contains the required fields of a proto2 message", () =>
    expect(exampleOfMessage(LegacySchema)).toMatchObject({ name: "text" }));
});

test.each([
  { name: "one value", values: ["ONLY"], want: { kind: "ONLY" } },
  { name: "two values", values: ["UNSPECIFIED", "SECOND"], want: { kind: "SECOND" } },
])("an enum with $name has the example $want.kind in documents", ({ values, want }) => {
  const field = [{ name: "kind", number: 1, type: FieldDescriptorProto_Type.ENUM, label: 1, typeName: ".kinds.Kind" }];
  const enumType = [{ name: "Kind", value: values.map((name, number) => ({ name, number })) }];
  const file = { name: "kinds.proto", package: "kinds", messageType: [{ name: "Thing", field }], enumType };
  const thing = messageIn({ ...file, syntax: "proto3" }, "kinds.Thing");
  const total = new FieldBudget(maxDocumentFields);
  expect(createExample(thing, { nameOf: ({ name }) => name, total })).toEqual(want);
});
