import { expect, test } from "vitest";
import { readCorsOrigins } from "../../src/server/setting-readers.ts";

test.each([
  { text: "*", want: "*" },
  { text: "https://shop.example", want: ["https://shop.example"] },
  { text: "https://shop.example, http://localhost:3000", want: ["https://shop.example", "http://localhost:3000"] },
])('readCorsOrigins reads "$text"', ({ text, want }) => {
  expect(readCorsOrigins(text)).toEqual({ kind: "value", value: want });
});

test.each([
  { name: "a host without a scheme", text: "shop.example" },
  { name: "a trailing slash", text: "https://shop.example/" },
  { name: "a path", text: "https://shop.example/cart" },
  { name: "a host with capitals", text: "https://Shop.example" },
  { name: "a default port", text: "https://shop.example:443" },
  { name: "an empty item", text: "https://shop.example,,http://localhost" },
  { name: "the opaque origin of sandboxed pages", text: "null" },
  { name: "* in a list", text: "https://shop.example,*" },
])("$name is refused by readCorsOrigins", ({ text }) => {
  expect(readCorsOrigins(text)).toMatchObject({ kind: "problems" });
});
