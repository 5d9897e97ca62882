import {
  create,
  type DescField,
  type DescFile,
  type DescMessage,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
  type Registry,
} from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { FieldRules as ProtoFieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { FieldKeywords, FieldRules, OpenApiSchema } from "../openapi/index.ts";
import { createReachableRegistry, memoize } from "../protobuf/index.ts";
import { keywordsOf } from "./rule-keywords.ts";
import { findRules, type Protovalidate } from "./rules.ts";

/**
 * Describes `buf.validate` field rules for documents. Required fields are found by validating an empty message.
 * Untrusted rules, even in responses, are not evaluated, because patterns and CEL could take long or fill the memory.
 */
export class DescribedRules implements FieldRules {
  /** Returns a field's decoded rules, cached because `getOption` decodes the option on each call. */
  readonly #rulesOf: (field: DescField) => ProtoFieldRules | false;
  readonly #rulesType: DescMessage;
  readonly #preparedOf: (file: DescFile) => { readonly registry: Registry; readonly validator: Validator };
  readonly #requiredIn: (type: DescMessage) => ReadonlySet<DescField>;
  readonly #hasRules: (type: DescMessage) => boolean;
  readonly #isUntrusted: boolean;

  constructor(protovalidate: Protovalidate, isUntrusted: boolean) {
    const { createValidator, field: fieldRules, FieldRulesSchema } = protovalidate;
    this.#isUntrusted = isUntrusted;
    this.#hasRules = memoize((type) => findRules([type], protovalidate).owners > 0);
    this.#rulesType = FieldRulesSchema;
    this.#rulesOf = memoize((field) => (hasOption(field, fieldRules) ? getOption(field, fieldRules) : false));
    this.#preparedOf = memoize((file) => {
      const registry = createReachableRegistry([{ file }]);
      return { registry, validator: createValidator({ registry }) };
    });
    this.#requiredIn = memoize((type) => {
      if (isUntrusted) return new Set(type.fields.filter((each) => this.#isMarkedRequired(each)));
      // A string that must not be empty is also required, because a string that is not sent is empty.
      const { violations = [] } = this.#preparedOf(type.file).validator.validate(type, create(type));
      const violated = new Set(violations.map(({ field: [first] }) => first));
      return new Set(type.fields.filter((each) => violated.has(each)));
    });
  }

  keywordsOf(field: DescField): FieldKeywords | undefined {
    const rules = this.#rulesOf(field);
    return rules === false ? undefined : keywordsOf(field, rules, this.#rulesType);
  }

  isRequired(field: DescField): boolean {
    if (field.oneof !== undefined && field.oneof.fields.length > 1) return false;
    return this.#requiredIn(field.parent).has(field);
  }

  #isMarkedRequired(field: DescField): boolean {
    const rules = this.#rulesOf(field);
    return rules !== false && rules.required;
  }

  exampleOf(field: DescField): readonly (string | number | boolean)[] | undefined {
    const rules = this.#rulesOf(field);
    if (rules === false) return undefined;
    const { value, element } = this.keywordsOf(field) ?? {};
    const keywords = field.fieldKind === "list" || field.fieldKind === "map" ? element : value;
    // No example can be derived from a CEL expression.
    if (rules.cel.length + rules.celExpression.length > 0 && keywords?.["examples"] === undefined) return [];
    if (keywords === undefined || Object.keys(keywords).length === 0) return undefined;
    if (this.#isUntrusted && keywords["pattern"] !== undefined) return [];
    const example = exampleOf(keywords);
    return example === undefined ? [] : [example];
  }

  accepts(type: DescMessage, json: JsonObject): boolean {
    if (this.#isUntrusted) return !this.#hasRules(type);
    const { registry, validator } = this.#preparedOf(type.file);
    try {
      return validator.validate(type, fromJson(type, json, { registry })).kind === "valid";
    } catch {
      return false;
    }
  }
}

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
  const given = [fixed, ...ruleListOf(examples), ...ruleListOf(allowed)].find(isExample);
  if (given !== undefined) return given;
  if (typeof format === "string") return formatExamples[format];
  if (typeof pattern === "string") return patternExamples.find((text) => new RegExp(pattern, "u").test(text));
  return textRulesOf(keywords) ?? numberOf(keywords);
}

function ruleListOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isExample(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function textRulesOf({ minLength, maxLength }: OpenApiSchema): string | undefined {
  if (minLength === undefined && maxLength === undefined) return undefined;
  const length = Math.min(
    Math.max("text".length, Number(minLength ?? 0)),
    Number(maxLength ?? Number.POSITIVE_INFINITY),
  );
  return length > maxExampleLength ? undefined : "text".repeat(Math.ceil(length / 4)).slice(0, length);
}

/** Maximum characters in an example. Longer examples do not explain more. */
const maxExampleLength = 100;

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
