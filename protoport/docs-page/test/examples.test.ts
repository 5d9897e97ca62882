import { expect, test } from "vitest";
import type { Media, Schema } from "../src/files/description.ts";
import { exampleOf } from "../src/files/example.ts";

const description = { info: { title: "t", version: "1" }, paths: {} };
const coupon = { type: "string", writeOnly: true };
const orderFields = { item: { type: "string" }, price: { type: "integer", readOnly: true }, coupon };
const order: Schema = { type: "object", properties: orderFields };
const orders: Schema = { type: "object", properties: { orders: { type: "array", items: order } } };

test.each([
  { leftOut: "readOnly", want: { item: "text", coupon: "text" } },
  { leftOut: "writeOnly", want: { item: "text", price: 7 } },
] as const)("exampleOf omits $leftOut fields of messages, even in lists or alternatives", ({ leftOut, want }) => {
  expect(exampleOf(description, { schema: order }, leftOut)).toEqual(want);
  expect(exampleOf(description, { schema: orders }, leftOut)).toEqual({ orders: [want] });
  expect(exampleOf(description, { schema: { anyOf: [order, {}] } }, leftOut)).toEqual(want);
});

test.each<{ readonly name: string; readonly media: Media; readonly want: unknown }>([
  { name: "the media type's example", media: { example: "a", schema: { examples: ["b"] } }, want: "a" },
  { name: "the schema's first example", media: { schema: { examples: ["a", "b"], enum: ["c"] } }, want: "a" },
  { name: "the first enum value", media: { schema: { type: "string", enum: ["A", "B"] } }, want: "A" },
  { name: "the first alternative", media: { schema: { anyOf: [{ type: "integer" }, { type: "string" }] } }, want: 7 },
  { name: "a message of a stream", media: { itemSchema: { type: "boolean" } }, want: true },
  { name: "a message rather than a stream's", media: { schema: { type: "boolean" }, itemSchema: {} }, want: true },
  { name: "a list without item schema", media: { schema: { type: "array" } }, want: ["text"] },
  { name: "an example with null", media: { schema: { examples: [{ a: null }] } }, want: { a: null } },
  { name: "a number", media: { schema: { type: "number" } }, want: 7 },
  { name: "no value without a schema", media: {}, want: undefined },
])("exampleOf returns $name", ({ media, want }) => expect(exampleOf(description, media, "readOnly")).toEqual(want));

/** Returns a description whose schema `Tree` has fields that contain the schema again. */
function treeOf(width: number) {
  const $ref = "#/components/schemas/Tree";
  const properties = Object.fromEntries(Array.from({ length: width }, (_, at) => [`f${at}`, { $ref }]));
  return { ...description, components: { schemas: { Tree: { type: "object", properties } } } };
}

test("exampleOf nests a schema that contains itself at most four times", () => {
  const example = exampleOf(treeOf(1), { schema: { $ref: "#/components/schemas/Tree" } }, "readOnly");
  expect(JSON.stringify(example)).toBe('{"f0":{"f0":{"f0":{}}}}');
});

test("exampleOf returns at most 500 objects for a schema that branches", () => {
  const example = exampleOf(treeOf(20), { schema: { $ref: "#/components/schemas/Tree" } }, "readOnly");
  expect(JSON.stringify(example).match(/\{/g)).toHaveLength(500);
});
