import { expect, test } from "vitest";
import { readCorsOrigins } from "../../src/server/setting-readers.ts";

test.each([
  { text: "*", want: "*" },
  { text: "https://shop.example", want: ["https://shop.example"] },
  { text: "https://shop.example, http://localhost:3000", want: ["https://shop.example", "http://localhost:3000"] },
])("$text means $want", ({ text, want }) => {
  expect(readCorsOrigins(text)).toEqual({ kind: "value", value: want });
});

test.each([
  { name: "a host alone", text: "shop.example" },
  { name: "a slash at the end", text: "https://shop.example/" },
  { name: "a path", text: "https://shop.example/cart" },
  { name: "capitals", text: "https://Shop.example" },
  { name: "the port that is meant anyway", text: "https://shop.example:443" },
  { name: "nothing between commas", text: "https://shop.example,,http://localhost" },
  { name: "the opaque origin, which every sandboxed page has", text: "null" },
  { name: "a star among others", text: "https://shop.example,*" },
])("$name is refused, since no browser sends it", ({ text }) => {
  expect(readCorsOrigins(text)).toMatchObject({ kind: "problems" });
});
