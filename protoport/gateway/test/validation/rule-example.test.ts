import { expect, test } from "vitest";
import { exampleOf } from "../../src/validation/field-rules.ts";

test.each([
  { keywords: {}, want: undefined },
  { keywords: { minItems: 1 }, want: undefined },
  { keywords: { const: 3, examples: [4], enum: [5] }, want: 3 },
  { keywords: { examples: [4], enum: [5] }, want: 4 },
  { keywords: { examples: [null, {}], enum: [false], minimum: 1 }, want: false },
  { keywords: { format: "email", minLength: 3 }, want: "ada@example.com" },
  { keywords: { format: "hostname" }, want: "example.com" },
  { keywords: { format: "ipv4" }, want: "192.0.2.1" },
  { keywords: { format: "ipv6" }, want: "2001:db8::1" },
  { keywords: { format: "uri" }, want: "https://example.com/" },
  { keywords: { format: "uri-reference" }, want: "/path" },
  { keywords: { format: "uuid", pattern: "x" }, want: "8e03978e-40d5-43e8-bc93-6894a57f9324" },
  { keywords: { format: "other", minLength: 3 }, want: undefined },
  { keywords: { pattern: "^[0-9]{3}$" }, want: "123" },
  { keywords: { pattern: String.raw`^\p{Lu}$` }, want: "A" },
  { keywords: { pattern: "^none$", minLength: 3 }, want: undefined },
  { keywords: { minLength: 2, maxLength: 20 }, want: "text" },
  { keywords: { minLength: 6 }, want: "textte" },
  { keywords: { maxLength: 3 }, want: "tex" },
  { keywords: { maxLength: 0 }, want: "" },
  { keywords: { minLength: 100 }, want: "text".repeat(25) },
  { keywords: { minLength: 101 }, want: undefined },
  { keywords: { minimum: 18, exclusiveMaximum: 130 }, want: 18 },
  { keywords: { minimum: 18, maximum: 19 }, want: 18 },
  { keywords: { maximum: 5 }, want: 5 },
  { keywords: { exclusiveMinimum: 0, maximum: 0.5 }, want: 0.5 },
  { keywords: { exclusiveMinimum: 1 }, want: 2 },
  { keywords: { exclusiveMaximum: 9 }, want: 8 },
  { keywords: { exclusiveMinimum: 0, exclusiveMaximum: 2 }, want: 1 },
  { keywords: { exclusiveMinimum: 1, exclusiveMaximum: 2 }, want: 1.5 },
])("exampleOf returns $want for the keywords $keywords of a field", ({ keywords, want }) => {
  expect(exampleOf(keywords)).toBe(want);
});
