import { describe, expect, test } from "vitest";
import { createMessageSchema, omittedSchema } from "../../src/openapi/message-schema.ts";
import { messageIn, stringField } from "../../../testing/src/gateway/file-init.ts";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// Schemas of one message, as tools describe their inputs and outputs.

const int32 = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const anyDouble = { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] };

describe.each(["input", "output"] as const)("the %s schema", (direction) => {
  const { properties } = createMessageSchema(SinkSchema, {
    comments: new Map(),
    useProtoFieldName: false,
    direction,
  });

  test.each([
    { name: "int32 fields", field: "fInt32", want: int32 },
    { name: "int32 map values", field: "counts.additionalProperties", want: int32 },
    { name: "double fields", field: "fDouble", want: direction === "input" ? { type: "number" } : anyDouble },
    {
      name: "doubles in a list",
      field: "doubles.items",
      want: direction === "input" ? { type: "number" } : anyDouble,
    },
  ])("describes $name by their JSON types", ({ field, want }) => {
    expect(properties).toHaveProperty(field, want);
  });
});

test("the schema of a message with more than 2,000 fields is omitted", () => {
  const field = Array.from({ length: 2_001 }, (_, at) => stringField(`text${at}`, at + 1));
  const file = { name: "wide.proto", package: "wide", syntax: "proto3", messageType: [{ name: "Wide", field }] };
  const wide = messageIn(file, "wide.Wide");
  const options = { comments: new Map(), useProtoFieldName: false, direction: "input" } as const;
  expect(createMessageSchema(wide, options)).toBe(omittedSchema);
});
