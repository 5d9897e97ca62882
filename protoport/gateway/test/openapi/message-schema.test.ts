import { describe, expect, test } from "vitest";
import { createMessageSchema } from "../../src/openapi/message-schema.ts";
import { messageIn, stringField } from "../../../testing/src/gateway/file-init.ts";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

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
    expect(isTruncated).toBe(true);
    expect(Object.keys(Object(schema["properties"]))).toHaveLength(61);
    const inner = Object.keys(Object(Reflect.get(Object(schema["$defs"]), "Nested").properties)).length;
    expect(inner).toBeGreaterThan(200);
    expect(inner).toBeLessThan(540);
  });
});
