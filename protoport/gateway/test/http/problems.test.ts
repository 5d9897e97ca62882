import { expect, test, vi } from "vitest";
import { isProduction, messageOf, toShortLine } from "../../src/http/problems.ts";

test.each([
  { name: "keeps a line of 200 characters", text: "a".repeat(200), line: "a".repeat(200) },
  { name: "truncates a line of 201 characters", text: "a".repeat(201), line: `${"a".repeat(200)}…` },
  { name: "replaces control characters before truncating", text: `${"\n".repeat(201)}a`, line: " a" },
])("toShortLine $name", ({ text, line }) => expect(toShortLine(text)).toBe(line));

test.each([
  { name: "an Error", thrown: new TypeError("no such order"), message: "no such order" },
  { name: "a thrown string", thrown: "no such order", message: "no such order" },
  { name: "undefined", thrown: undefined, message: "undefined" },
  { name: "an object", thrown: { message: "not an error" }, message: "[object Object]" },
])('for $name, messageOf returns "$message"', ({ thrown, message }) => expect(messageOf(thrown)).toBe(message));

test("isProduction() returns false in a runtime without a process object", () => {
  vi.stubGlobal("process", undefined);
  let result: boolean | undefined;
  try {
    result = isProduction();
  } finally {
    vi.unstubAllGlobals();
  }
  expect(result).toBe(false);
});
