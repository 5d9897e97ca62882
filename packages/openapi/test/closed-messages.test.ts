import { describe, expect, test } from "vitest";
import { createOpenApi, type OpenApiOptions } from "../src/create-open-api.ts";
import type { OpenApiSchema } from "../src/open-api-document.ts";
import { KitchenSink } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

// Which objects allow other properties, and which keys maps have.

const info = { title: "Test", version: "1" };

function schemasOf(rest: OpenApiOptions["rest"] = {}): Readonly<Record<string, OpenApiSchema>> {
  return createOpenApi([KitchenSink, Shelves, LegacySink], { info, rest }).components?.schemas ?? {};
}

describe("a message", () => {
  test.each([
    { name: "of requests is closed", message: "Sink", want: false },
    { name: "inside requests is closed", message: "Nested", want: false },
    { name: "of responses only is open", message: "Echo", want: undefined },
    { name: "with extensions is open", message: "Legacy", want: undefined },
  ])("$name", ({ message, want }) => {
    const schema = schemasOf()[message];
    expect(schema).toHaveProperty("properties");
    expect(schema?.["additionalProperties"]).toBe(want);
  });

  test("is open if any service that reads it ignores unknown fields", () => {
    const schemas = schemasOf({ service: ({ typeName }) => ({ lenient: typeName === KitchenSink.typeName }) });
    expect(schemas["Sink"]).not.toHaveProperty("additionalProperties");
    expect(schemas["Shelf"]).toHaveProperty("additionalProperties", false);
  });
});

describe("a body without the fields of the path", () => {
  test.each([
    { name: "is closed", rest: {}, want: false },
    { name: "is open if it may repeat them", rest: { service: () => ({ sameValueAsPath: true }) }, want: undefined },
  ])("$name", ({ rest, want }) => {
    const { paths } = createOpenApi([KitchenSink], { info, rest });
    const schema = paths["/v1/sinks/{f_int64}"]?.put?.requestBody?.content["application/json"]?.schema;
    expect(schema).toHaveProperty("properties");
    expect(schema?.["additionalProperties"]).toBe(want);
  });
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
  expect(Reflect.get(Object(schemasOf()["Sink"]?.["properties"]), field).propertyNames).toEqual(want);
});
