import { create, type DescField, type MessageInitShape } from "@bufbuild/protobuf";
import { FieldRulesSchema, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import type { FieldKeywords } from "../../src/openapi/index.ts";
import { keywordsOf } from "../../src/validation/rule-keywords.ts";

type Rules = MessageInitShape<typeof FieldRulesSchema>;

function keywordsOfField(name: keyof typeof SinkSchema.field, rules: Rules): FieldKeywords | undefined {
  const field: DescField = SinkSchema.field[name];
  return keywordsOf(field, create(FieldRulesSchema, rules), FieldRulesSchema);
}

/** Numbers are compared like this with each bound. */
const number = (value: object): Rules => ({ type: { case: "int32", value } });
const string = (value: object): Rules => ({ type: { case: "string", value } });
const gt = (value: number): object => ({ greaterThan: { case: "gt", value } });
const lt = (value: number): object => ({ lessThan: { case: "lt", value } });
const inclusive = number({ greaterThan: { case: "gte", value: 1 }, lessThan: { case: "lte", value: 9 } });
const gap = { anyOf: [{ exclusiveMinimum: 9 }, { exclusiveMaximum: 1 }] };

test.each<[name: string, rules: Rules, want: object]>([
  ["a lower and an upper bound", number({ ...gt(1), ...lt(9) }), { exclusiveMinimum: 1, exclusiveMaximum: 9 }],
  ["bounds in reverse order (a gap)", number({ ...gt(9), ...lt(1) }), gap],
  ["an inclusive lower and upper bound", inclusive, { minimum: 1, maximum: 9 }],
  ["equal bounds", number({ ...gt(5), ...lt(5) }), { exclusiveMinimum: 5, exclusiveMaximum: 5 }],
  ["a constant", number({ const: 3 }), { const: 3 }],
  ["allowed values", number({ in: [1, 2] }), { enum: [1, 2] }],
  ["a constant and allowed values", number({ const: 3, in: [1] }), { const: 3, allOf: [{ enum: [1] }] }],
  ["refused values", number({ notIn: [1, 2] }), { not: { enum: [1, 2] } }],
  ["examples", number({ example: [7] }), { examples: [7] }],
])("number rules with %s become JSON Schema keywords", (_name, rules, want) => {
  expect(keywordsOfField("fInt32", rules)?.value).toEqual(want);
});

test.each<readonly [name: string, field: keyof typeof SinkSchema.field, rules: Rules, want: object]>([
  [
    "a float with the fewest digits",
    "fFloat",
    { type: { case: "float", value: { in: [0.1, 0] } } },
    { enum: [0.1, 0] },
  ],
  ["a double with all digits", "fDouble", { type: { case: "double", value: { const: 0.1 } } }, { const: 0.1 }],
  ["no bound for infinity", "fDouble", { type: { case: "double", value: lt(Number.POSITIVE_INFINITY) } }, {}],
  ["no value for a constant NaN", "fDouble", { type: { case: "double", value: { const: Number.NaN } } }, { not: {} }],
  ["both forms of a 64-bit constant", "fInt64", { type: { case: "int64", value: { const: 5n } } }, { enum: ["5", 5] }],
  ["no bounds of 64-bit integers", "fInt64", { type: { case: "int64", value: gt(1) } }, {}],
  ["a boolean constant", "fBool", { type: { case: "bool", value: { const: false } } }, { const: false }],
  ["no keywords for bytes", "fBytes", { type: { case: "bytes", value: { minLen: 1n } } }, {}],
])("keywordsOf writes %s as JSON Schema", (_, field, rules, want) => {
  expect(keywordsOfField(field, rules)?.value).toEqual(want);
});

test("an example that is not a JSON number adds no keyword", () => {
  const rules: Rules = { type: { case: "double", value: { example: [Number.NaN] } } };
  expect(keywordsOfField("fDouble", rules)?.value).toEqual({});
});

test.each<{ readonly name: string; readonly value: object; readonly want: object }>(
  // oxfmt-ignore
  [
    { name: "lengths", value: { minLen: 2n, maxLen: 5n }, want: { minLength: 2, maxLength: 5 } },
    { name: "one length", value: { len: 4n }, want: { minLength: 4, maxLength: 4 } },
    { name: "a prefix with special characters", value: { prefix: "a.b" }, want: { pattern: String.raw`^a\.b` } },
    { name: "a suffix", value: { suffix: "$" }, want: { pattern: String.raw`\$$` } },
    { name: "a prefix and a suffix", value: { prefix: "a", suffix: "b" },
      want: { allOf: [{ pattern: "^a" }, { pattern: "b$" }] } },
    { name: "an excluded substring", value: { notContains: "x+" }, want: { not: { pattern: String.raw`x\+` } } },
    { name: "a format", value: { wellKnown: { case: "email", value: true } }, want: { format: "email" } },
    ...Object.entries({ email: "email", hostname: "hostname", uri: "uri", uriRef: "uri-reference" }).map(
      ([rule, format]) => ({ name: `the format ${format}`,
        value: { wellKnown: { case: rule, value: true } },
        want: { format },
      }),
    ),
    { name: "a format that is switched off", value: { wellKnown: { case: "email", value: false } }, want: {} },
    { name: "the format ipv6", value: { wellKnown: { case: "ipv6", value: true } },
      want: { anyOf: [{ format: "ipv6" }, { pattern: "^[^%]+%." }] } },
    { name: "the format ipv6 switched off", value: { wellKnown: { case: "ipv6", value: false } }, want: {} },
    { name: "a substring with special characters", value: { contains: "(a)" }, want: { pattern: String.raw`\(a\)` } },
    { name: "a suffix and all special characters", value: { suffix: "[$^|{}*?\\/" },
      want: { pattern: String.raw`\[\$\^\|\{\}\*\?\\\/$` } },
    { name: "a non-capturing group", value: { pattern: "^(?:a)$" }, want: { pattern: "^(?:a)$" } },
    { name: "flags within a pattern", value: { pattern: "(?i)a" }, want: {} },
    { name: "flags within a group", value: { pattern: "(?i:a)" }, want: {} },
    { name: "a literal text", value: { pattern: String.raw`\Qa\E` }, want: {} },
    { name: "a negated Unicode class", value: { pattern: String.raw`^\P{L}$` }, want: {} },
    { name: "a POSIX class", value: { pattern: "[[:alpha:]]" }, want: {} },
    { name: "a byte class", value: { pattern: String.raw`\C` }, want: {} },
    { name: "an escape that ECMAScript refuses", value: { pattern: String.raw`\-` }, want: {} },
    { name: "a pattern that ECMAScript interprets differently", value: { pattern: String.raw`^\p{L}$` }, want: {} },
    { name: "a pattern that only RE2 supports", value: { pattern: String.raw`\Aab` }, want: {} },
  ],
)("string rules with $name become only keywords that ECMAScript supports", ({ value, want }) => {
  expect(keywordsOfField("fString", string(value))?.value).toEqual(want);
});

test.each<readonly [about: string, name: keyof typeof SinkSchema.field, rules: Rules, value: object]>(
  // oxfmt-ignore
  [
    ["a string", "fString", {}, { minLength: 1 }],
    ["a string with a minimum length", "fString", string({ minLen: 3n }), { minLength: 3 }],
    ["a string with a minimum length of 0", "fString", string({ minLen: 0n }), { minLength: 1 }],
    ["a number", "fInt32", {}, { not: { enum: ["0", 0] } }],
    ["a boolean", "fBool", {}, { const: true }],
    ["bytes", "fBytes", {}, { minLength: 1 }],
    ["an enum", "fEnum", {}, { not: { enum: ["COLOR_UNSPECIFIED"] } }],
    ["a list", "ids", {}, { minItems: 1 }],
    ["a list with a maximum size", "ids", { type: { case: "repeated", value: { maxItems: 5n } } },
      { minItems: 1, maxItems: 5 }],
    ["a list with a minimum size of 0", "ids", { type: { case: "repeated", value: { minItems: 0n } } },
      { minItems: 1 }],
    ["a map", "labels", {}, { minProperties: 1 }],
    ["a map with a maximum size", "labels", { type: { case: "map", value: { maxPairs: 5n } } },
      { minProperties: 1, maxProperties: 5 }],
    ["a map with a minimum size", "labels", { type: { case: "map", value: { minPairs: 2n } } }, { minProperties: 2 }],
    ["a map with a minimum size of 0", "labels", { type: { case: "map", value: { minPairs: 0n } } },
      { minProperties: 1 }],
  ],
)("the schema of %s excludes the zero value if required", (_, name, rules, value) => {
  expect(keywordsOfField(name, { required: true, ...rules })?.value).toEqual(value);
});

test("the schema of a required field with presence accepts the zero value", () =>
  expect(keywordsOfField("maybeInt64", { required: true })?.value).toEqual({}));

test.each<{ name: string; field: keyof typeof SinkSchema.field; rules: Rules; want: FieldKeywords }>(
  // oxfmt-ignore
  [
    { name: "elements of a list", field: "tags",
      rules: { type: { case: "repeated", value: { unique: true, items: string({ minLen: 2n }) } } },
      want: { value: { uniqueItems: true }, element: { minLength: 2 } } },
    { name: "keys and values of a map", field: "labels",
      rules: { type: { case: "map", value: { keys: string({ maxLen: 3n }), values: string({ minLen: 2n }) } } },
      want: { value: {}, key: { maxLength: 3 }, element: { minLength: 2 } } },
    { name: "keys of a map with only CEL", field: "labels",
      rules: { type: { case: "map", value: { keys: { celExpression: ["true"] } } } }, want: { value: {}, key: {} } },
    { name: "integer keys of a map", field: "nestedById",
      rules: { type: { case: "map", value: { keys: { type: { case: "int64", value: { in: [1n, 2n] } } } } } },
      want: { value: {}, key: { enum: ["1", "2"] } } },
    { name: "an enum", field: "fEnum", rules: { type: { case: "enum", value: { in: [1, 2] } } },
      want: { value: { enum: ["COLOR_RED", "COLOR_GREEN"] } } },
    { name: "enums in a list", field: "colors",
      rules: { type: { case: "repeated", value: { items: { type: { case: "enum", value: { in: [1] } } } } } },
      want: { value: {}, element: { enum: ["COLOR_RED"] } } },
    { name: "enums in a map", field: "palette",
      rules: { type: { case: "map", value: { values: { type: { case: "enum", value: { in: [1] } } } } } },
      want: { value: {}, element: { enum: ["COLOR_RED"] } } },
    { name: "a 64-bit integer above 2^53", field: "fInt64",
      rules: { type: { case: "int64", value: { in: [2n ** 53n + 1n] } } },
      want: { value: { enum: ["9007199254740993"] } } },
    { name: "a 64-bit integer below 2^53", field: "fInt64", rules: { type: { case: "int64", value: { in: [5n] } } },
      want: { value: { enum: ["5", 5] } } },
  ],
)("rules for $name become schema keywords", ({ field, rules, want }) => {
  expect(keywordsOfField(field, rules)).toEqual(want);
});

test.each<readonly [place: string, name: keyof typeof SinkSchema.field, rules: Rules, want: FieldKeywords | undefined]>(
  // oxfmt-ignore
  [
    ["a field", "fString", string({ minLen: 2n }), undefined],
    ["list elements", "tags", { type: { case: "repeated", value: { items: string({ minLen: 2n }) } } },
      { value: {}, element: {} }],
    ["map keys", "labels", { type: { case: "map", value: { keys: string({ minLen: 2n }) } } }, { value: {}, key: {} }],
    ["map values", "labels", { type: { case: "map", value: { values: string({ minLen: 2n }) } } },
      { value: {}, element: {} }],
  ],
)("rules for %s add no schema keywords if ignore is set", (_, name, rules, want) => {
  const ignored = create(FieldRulesSchema, rules);
  const { type } = ignored;
  const nested =
    type.case === "repeated"
      ? type.value.items
      : type.case === "map"
        ? (type.value.keys ?? type.value.values)
        : ignored;
  if (nested !== undefined) nested.ignore = Ignore.IF_ZERO_VALUE;
  expect(keywordsOf(SinkSchema.field[name], ignored, FieldRulesSchema)).toEqual(want);
});

test.each<{ readonly rule: string; readonly accepted: readonly string[]; readonly refused: readonly string[] }>([
  { rule: "ipv4", accepted: ["0.0.0.0", "255.249.199.99"], refused: ["256.1.1.1", "01.1.1.1", "1.1.1", "1.1.1.1."] },
  {
    rule: "uuid",
    accepted: ["8e03978e-40d5-43e8-bc93-6894a57f9324", "8E03978E-40D5-43E8-BC93-6894A57F9324"],
    refused: ["8e03978e40d543e8bc936894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f932g"],
  },
  { rule: "tuuid", accepted: ["8e03978E40d543e8bc936894a57f9324"], refused: ["8e03978e40d543e8bc936894a57f932"] },
  {
    rule: "ulid",
    accepted: ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "7zzzzzzzzzzzzzzzzzzzzzzzzz"],
    refused: ["81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "01ARZ3NDEKTSV4RRFFQ69G5FA"],
  },
])("the pattern for $rule matches only valid strings", ({ rule, accepted, refused }) => {
  const { pattern } = keywordsOfField("fString", string({ wellKnown: { case: rule, value: true } }))?.value ?? {};
  const matches = (text: string): boolean => typeof pattern === "string" && new RegExp(pattern, "u").test(text);
  expect([accepted.every(matches), refused.some(matches)]).toEqual([true, false]);
});
