import { expect, test } from "vitest";
import { toShortLine } from "../../../src/http/errors/index.ts";

test.each([
  { name: "keeps a line of 200 characters", text: "a".repeat(200), line: "a".repeat(200) },
  { name: "truncates a line of 201 characters", text: "a".repeat(201), line: `${"a".repeat(200)}…` },
  { name: "replaces control characters before truncating", text: `${"\n".repeat(201)}a`, line: " a" },
])("toShortLine $name", ({ text, line }) => {
  expect(toShortLine(text)).toBe(line);
});
