import { expect, test } from "vitest";
import type { Schema } from "../../src/files/description.ts";
import { kindOf } from "../../src/files/kinds.ts";

const $ref = "#/components/schemas/Shelf";

test.each<[want: string, schema: Schema | undefined]>([
  ["any JSON", undefined],
  ["string", { type: "string" }],
  ["string, date-time", { type: "string", format: "date-time" }],
  ["string", { type: "string", enum: ["A", "B"] }],
  ['"A" or "B"', { enum: ["A", "B"] }],
  ["Shelf", { $ref }],
  ["Shelf", { $ref, type: "object" }],
  ["Shelf or string or null", { anyOf: [{ $ref }, { type: "string" }, { type: "null" }] }],
  ["array of array of Shelf", { type: "array", items: { type: "array", items: { $ref } } }],
  ["array of any JSON", { type: "array" }],
  ["map of integer, int32", { type: "object", additionalProperties: { type: "integer", format: "int32" } }],
  ["object", { type: "object", additionalProperties: true }],
])('kindOf returns "$0" for the schema $1 of a field', (want, schema) => expect(kindOf(schema)).toBe(want));
