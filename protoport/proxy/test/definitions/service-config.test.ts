import { toJson, create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { HttpRuleSchema } from "../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { parseServiceRules } from "../../src/definitions/service-config.ts";

const rules = [
  { selector: "a.B.C", get: "/v1/{name=x/*}", additionalBindings: [{ post: "/v1/x:c", body: "*" }] },
  { selector: "a.B.D", custom: { kind: "PROPFIND", path: "/v1/d" }, responseBody: "d" },
];

const yaml = `
type: google.api.Service
config_version: 3
apis: [{name: a.B}]
http:
  rules:
  - selector: a.B.C
    get: /v1/{name=x/*}
    additional_bindings:
    - post: /v1/x:c
      body: "*"
  - selector: a.B.D
    custom: {kind: PROPFIND, path: /v1/d}
    responseBody: d
`;

test.each([
  ["a YAML service config", yaml],
  ["google.api.Http in YAML", yaml.slice(yaml.indexOf("  rules:")).replaceAll(/^ {2}/gm, "")],
  ["a JSON service config", JSON.stringify({ type: "google.api.Service", http: { rules } })],
  ["google.api.Http in JSON", JSON.stringify({ rules })],
])("the HTTP rules of %s are returned by parseServiceRules", (_, text) => {
  expect(parseServiceRules(text).map((rule) => toJson(HttpRuleSchema, create(HttpRuleSchema, rule)))).toEqual(rules);
});

test.each([
  ["http:\n  rules:\n  - selectr: a\n", 'unknown field "rules[0].selectr"'],
  ["http:\n  rules:\n  - selector: 1\n", "rules[0].selector"],
  ["http: *rules\n", "line 1, column 7: *rules is an alias"],
  ["http:\n  rules:\n  - {<<: {selector: a.B.C}, get: /a}\n", 'unknown field "rules[0].<<"'],
  ["type: google.api.Service\n", "the member http, which holds the rules, is missing"],
  ["just a text\n", "the member http, which holds the rules, is missing"],
  ["", "the member http, which holds the rules, is missing"],
  ['{"http": ', "JSON"],
  ['{"rules": [], "rules": []}', "rules"],
])("parseServiceRules rejects %j and names the problem", (text, message) => {
  expect(() => parseServiceRules(text)).toThrow(message);
});

/** Returns a service config without rules, whose other member is nested this many levels deep. */
const nested = (levels: number): string =>
  `http: { rules: [] }\na: ${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}\n`;

test("parseServiceRules accepts YAML with 100 levels, and rejects 101", () => {
  expect(parseServiceRules(nested(100))).toEqual([]);
  expect(() => parseServiceRules(nested(101))).toThrow(
    "line 2, column 103: sequences and mappings must be nested at most 100 levels deep",
  );
});
