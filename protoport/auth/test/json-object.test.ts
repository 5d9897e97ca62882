import { expect, test } from "vitest";
import { parseJsonObject } from "../src/json-object.ts";

test("parseJsonObject returns an object", () =>
  expect(parseJsonObject('{"https:\\/\\/id.example\\/roles":["a\\\\b"]}', "it")).toEqual({
    kind: "value",
    value: { "https://id.example/roles": ["a\\b"] },
  }));

test.each([
  ["an array", "[]", "is not a JSON object"],
  ["invalid JSON", "{", "is not valid JSON"],
  ["a name with a backslash", '{"a\\\\b":1}', "has a member name with a backslash"],
])("parseJsonObject reports %s as a problem", (_, text, problem) => {
  expect(parseJsonObject(text, "it")).toEqual({ kind: "problems", problems: [`it ${problem}`] });
});

test("parseJsonObject reads escaped member names despite a V8 bug", () => {
  // V8 13 and 14 then return the first three characters of the second name's source (nodejs/node#63785).
  const before: unknown = JSON.parse('{"active":true,"\\\\u0":0}');
  expect(before).toBeDefined();
  const read = parseJsonObject('{"active":true,"\\u0063nf":{}}', "it");
  expect(read.kind === "problems" || Object.hasOwn(read.value, "cnf")).toBe(true);
});
