import { expect, test } from "vitest";
import { ofSource } from "@protoport/command-line/settings";
import { corsOrigins } from "../../src/server/setting-types.ts";

function read(text: string): unknown {
  const problems: string[] = [];
  return corsOrigins.read(ofSource("", "CORS", text), (_, problem) => problems.push(problem)) ?? problems;
}

test.each([
  { text: "*", want: "*" },
  { text: "https://shop.example", want: ["https://shop.example"] },
  { text: "https://shop.example, http://localhost:3000", want: ["https://shop.example", "http://localhost:3000"] },
])('corsOrigins reads "$text"', ({ text, want }) => {
  expect(read(text)).toEqual(want);
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
])("$name is refused by corsOrigins", ({ text }) => {
  expect(read(text)).toEqual([expect.stringContaining("must be * or a comma-separated list of origins")]);
});
