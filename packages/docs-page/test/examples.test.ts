import { expect, test } from "vitest";
import type { Schema } from "../src/files/description.ts";
import { exampleOf } from "../src/files/example.ts";

const description = { info: { title: "t", version: "1" }, paths: {} };
const order: Schema = {
  type: "object",
  properties: {
    item: { type: "string" },
    price: { type: "integer", readOnly: true },
    coupon: { type: "string", writeOnly: true },
  },
};
const orders: Schema = { type: "object", properties: { orders: { type: "array", items: order } } };

test.each([
  { leftOut: "readOnly", want: { item: "text", coupon: "text" } },
  { leftOut: "writeOnly", want: { item: "text", price: 7 } },
] as const)("exampleOf omits $leftOut fields of messages, even in lists", ({ leftOut, want }) => {
  expect(exampleOf(description, { schema: order }, leftOut)).toEqual(want);
  expect(exampleOf(description, { schema: orders }, leftOut)).toEqual({ orders: [want] });
});
