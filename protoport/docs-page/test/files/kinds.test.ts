import { expect, test } from "vitest";
import type { Schema } from "../../src/files/description.ts";
import { kindOf } from "../../src/files/kinds.ts";

const $ref = "#/components/schemas/Shelf";

test.each<{ readonly schema: Schema | undefined; readonly want: string }>([
  { schema: undefined, want: "any JSON" },
  { schema: { type: "string" }, want: "string" },
  { schema: { type: "string", format: "date-time" }, want: "string, date-time" },
  { schema: { type: "string", enum: ["A", "B"] }, want: "string" },
  { schema: { enum: ["A", "B"] }, want: '"A" or "B"' },
  { schema: { $ref }, want: "Shelf" },
  { schema: { $ref, type: "object" }, want: "Shelf" },
  { schema: { anyOf: [{ $ref }, { type: "string" }, { type: "null" }] }, want: "Shelf or string or null" },
  { schema: { type: "array", items: { type: "array", items: { $ref } } }, want: "array of array of Shelf" },
  { schema: { type: "array" }, want: "array of any JSON" },
  {
    schema: { type: "object", additionalProperties: { type: "integer", format: "int32" } },
    want: "map of integer, int32",
  },
  { schema: { type: "object", additionalProperties: true }, want: "object" },
])('kindOf returns "$want" for the schema $schema of a field', ({ schema, want }) => {
  expect(kindOf(schema)).toBe(want);
});
