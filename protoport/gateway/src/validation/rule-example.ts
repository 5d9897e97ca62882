import type { OpenApiSchema } from "../openapi/index.ts";

const formatExamples: Readonly<Record<string, string>> = {
  email: "ada@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  "uri-reference": "/path",
  uuid: "8e03978e-40d5-43e8-bc93-6894a57f9324",
};

/** Example strings for fields with a pattern. Most patterns match one of the strings. */
const patternExamples: readonly string[] = "text 12345 123 A a1 abc-123 +12025550123 2026-01-31 TEXT shelves/1".split(
  " ",
);

/** Returns an example value for JSON Schema keywords, if possible. The value may violate other rules. */
export function exampleOf(keywords: OpenApiSchema): string | number | boolean | undefined {
  const { examples, const: fixed, enum: allowed, format, pattern } = keywords;
  const given = [fixed, ...listOf(examples), ...listOf(allowed)].find(isExample);
  if (given !== undefined) return given;
  if (typeof format === "string") return formatExamples[format];
  if (typeof pattern === "string") return patternExamples.find((text) => new RegExp(pattern, "u").test(text));
  return textOf(keywords) ?? numberOf(keywords);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isExample(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function textOf({ minLength, maxLength }: OpenApiSchema): string | undefined {
  if (minLength === undefined && maxLength === undefined) return undefined;
  const length = Math.min(
    Math.max("text".length, Number(minLength ?? 0)),
    Number(maxLength ?? Number.POSITIVE_INFINITY),
  );
  return length > exampleLengthMax ? undefined : "text".repeat(Math.ceil(length / 4)).slice(0, length);
}

/** Maximum characters in an example. Longer examples do not explain more. */
const exampleLengthMax = 100;

function numberOf(keywords: OpenApiSchema): number | undefined {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = keywords;
  if (minimum !== undefined) return Number(minimum);
  if (maximum !== undefined) return Number(maximum);
  if (exclusiveMinimum === undefined) return exclusiveMaximum === undefined ? undefined : Number(exclusiveMaximum) - 1;
  const above = Number(exclusiveMinimum) + 1;
  return exclusiveMaximum === undefined || above < Number(exclusiveMaximum)
    ? above
    : (Number(exclusiveMinimum) + Number(exclusiveMaximum)) / 2;
}
