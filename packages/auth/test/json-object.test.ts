import { expect, test } from "vitest";
import { parseJsonObject } from "../src/json-object.ts";

test("an object is read", () => {
  expect(parseJsonObject('{"https:\\/\\/id.example\\/roles":["a\\\\b"]}', "it")).toEqual({
    kind: "value",
    value: { "https://id.example/roles": ["a\\b"] },
  });
});

test.each([
  ["an array", "[]", "is not a JSON object"],
  ["no JSON", "{", "is not valid JSON"],
  ["a name with a backslash", '{"a\\\\b":1}', "has a member name with a backslash"],
])("%s is a problem", (_, text, problem) => {
  expect(parseJsonObject(text, "it")).toEqual({ kind: "problems", problems: [`it ${problem}`] });
});

test("no name with an escape is missed, whatever JSON.parse has read before", () => {
  // V8 13 and 14 read the name of the second text as the first three characters of how it is written then
  // (nodejs/node#63785).
  const before: unknown = JSON.parse('{"active":true,"\\\\u0":0}');
  expect(before).toBeDefined();
  const read = parseJsonObject('{"active":true,"\\u0063nf":{}}', "it");
  expect(read.kind === "problems" || Object.hasOwn(read.value, "cnf")).toBe(true);
});
