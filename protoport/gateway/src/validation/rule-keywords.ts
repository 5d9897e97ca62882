import { type DescEnum, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { FieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { shortestFloat } from "../protobuf/index.ts";
import type { FieldKeywords, OpenApiSchema } from "../openapi/index.ts";

// Converts the standard buf.validate rules to JSON Schema keywords. Rules that JSON Schema cannot express are omitted,
// so the schema may accept more than the server. The schema accepts less only for patterns, because RE2 and ECMAScript
// differ for spaces and line ends outside ASCII. The test for these keywords lists the omitted rules.

/** The rules that are set for one value, by their names in `buf/validate/validate.proto`. */
type GivenRules = ReadonlyMap<string, unknown>;

/** Returns the JSON values for a rule's value. 64-bit integers and enum numbers may have several. */
type ToChoices = (value: unknown) => Choice[];

/** Returns the keywords for a field's rules. `rulesType` describes buf.validate.FieldRules. */
export function keywordsOf(field: DescField, rules: FieldRules, rulesType: DescMessage): FieldKeywords | undefined {
  if (isIgnored(rules)) return undefined;
  const { case: kind, value } = rules.type;
  const isRequired = rules.required && field.presence === FeatureSet_FieldPresence.IMPLICIT;
  if (field.fieldKind === "list") {
    if (kind !== "repeated") return isRequired ? { value: { minItems: 1 } } : undefined;
    const given = givenRules(value, kind, rulesType);
    const unique = given.get("unique") === true ? { uniqueItems: true } : {};
    const size = limits(given, { min_items: "minItems", max_items: "maxItems" });
    return {
      value: { ...(isRequired ? atLeastOne("minItems", size) : size), ...unique },
      ...(value.items && { element: keywordsOfValue(value.items, rulesType, enumFormsOf(field.enum)) }),
    };
  }
  if (field.fieldKind === "map") {
    if (kind !== "map") return isRequired ? { value: { minProperties: 1 } } : undefined;
    const { keys, values } = value;
    const size = limits(givenRules(value, kind, rulesType), { min_pairs: "minProperties", max_pairs: "maxProperties" });
    return {
      value: isRequired ? atLeastOne("minProperties", size) : size,
      ...(keys && { key: keywordsOfKey(keys, rulesType) }),
      ...(values && { element: keywordsOfValue(values, rulesType, enumFormsOf(field.enum)) }),
    };
  }
  const keywords = keywordsOfValue(rules, rulesType, enumFormsOf(field.enum));
  return { value: isRequired ? requireNonZero(field, keywords) : keywords };
}

const notIgnored: Ignore = 0;

/** Returns whether the rules are ignored for some values. */
function isIgnored({ ignore }: FieldRules): boolean {
  return ignore !== notIgnored;
}

/** Returns the keywords for the rules that apply to a singular field's value, or to an element. */
function keywordsOfValue(rules: FieldRules, rulesType: DescMessage, toJson: ToChoices): OpenApiSchema {
  const { case: kind, value } = rules.type;
  if (kind === undefined || isIgnored(rules)) return {};
  const given = givenRules(value, kind, rulesType);
  if (kind === "string") return combine(choices(given, toJson), ofString(given));
  if (numberKinds.has(kind)) return combine(choices(given, toJson), bounds(given));
  return choiceKinds.has(kind) ? choices(given, toJson) : {};
}

/** Returns a map key's keywords. A map key is always a string in JSON. */
function keywordsOfKey(rules: FieldRules, rulesType: DescMessage): OpenApiSchema {
  const { case: kind, value } = rules.type;
  if (kind === undefined || kind === "string") return keywordsOfValue(rules, rulesType, enumFormsOf(undefined));
  return isIgnored(rules) ? {} : choices(givenRules(value, kind, rulesType), (given) => [String(given)]);
}

function enumFormsOf(enumeration: DescEnum | undefined): ToChoices {
  if (enumeration === undefined) return (value) => (isChoice(value) ? formsOfScalar(value) : []);
  return (value) => enumeration.values.filter(({ number }) => number === value).map(({ name }) => name);
}

function formsOfScalar(value: Choice | bigint): Choice[] {
  if (typeof value !== "bigint") return [value];
  return Number.isSafeInteger(Number(value)) ? [String(value), Number(value)] : [String(value)];
}

/** Adds a keyword that refuses a field's zero value, because `required` refuses zero in a field without presence. */
function requireNonZero(field: DescField, keywords: OpenApiSchema): OpenApiSchema {
  if (field.enum !== undefined) return combine(keywords, exclude(enumFormsOf(field.enum)(0)));
  switch (field.scalar) {
    case ScalarType.STRING:
      return atLeastOne("minLength", keywords);
    case ScalarType.BYTES:
      return combine(keywords, { minLength: 1 });
    case ScalarType.BOOL:
      return combine(keywords, { const: true });
    case undefined:
      return keywords;
    default:
      return combine(keywords, exclude(["0", 0]));
  }
}

function atLeastOne(keyword: "minItems" | "minLength" | "minProperties", keywords: OpenApiSchema): OpenApiSchema {
  return { ...keywords, [keyword]: Math.max(1, Number(keywords[keyword] ?? 1)) };
}

function combine(one: OpenApiSchema, other: OpenApiSchema): OpenApiSchema {
  const isDisjoint = Object.keys(other).every((keyword) => !(keyword in one));
  return isDisjoint ? { ...one, ...other } : { allOf: [one, other] };
}

function exclude(values: Choice[]): OpenApiSchema {
  return values.length === 0 ? {} : { not: { enum: values } };
}

/** The types for which only rules that list values become keywords: `const`, `in`, `not_in` and `example`. */
const choiceKinds: ReadonlySet<string> = new Set("bool enum int64 uint64 sint64 fixed64 sfixed64".split(" "));

const numberKinds: ReadonlySet<string> = new Set("float double int32 uint32 sint32 fixed32 sfixed32".split(" "));

function givenRules(value: Message, kind: string, rulesType: DescMessage): GivenRules {
  const type = rulesType.field[kind]?.message;
  if (type === undefined) return new Map();
  const given = reflect(type, value);
  const set = given.fields.filter((field) => given.isSet(field));
  // A 32-bit float is written as in JSON, with the fewest digits that are read back as the same float.
  const read = kind === "float" ? (rule: unknown): unknown => (hasDigits(rule) ? shortestFloat(rule) : rule) : sameRule;
  return new Map(
    set.map((field) => [
      field.name,
      field.fieldKind === "list" ? Array.from(given.get(field), read) : read(given.get(field)),
    ]),
  );
}

function sameRule(rule: unknown): unknown {
  return rule;
}

function hasDigits(rule: unknown): rule is number {
  return Number.isFinite(rule) && rule !== 0;
}

function limits(given: GivenRules, names: Readonly<Record<string, string>>): OpenApiSchema {
  const set = Object.entries(names).filter(([rule]) => given.has(rule));
  return Object.fromEntries(set.map(([rule, keyword]) => [keyword, Number(given.get(rule))]));
}

type Choice = string | number | boolean;

function isChoice(value: unknown): value is Choice | bigint {
  return ["string", "boolean", "bigint"].includes(typeof value) || Number.isFinite(value);
}

function choices(given: GivenRules, toJson: ToChoices): OpenApiSchema {
  const formsIn = (rule: string): Choice[] | undefined => {
    const values = given.get(rule);
    return Array.isArray(values) ? values.flatMap(toJson) : undefined;
  };
  const fixed = given.has("const") ? toJson(given.get("const")) : undefined;
  const allowed = formsIn("in");
  const examples = formsIn("example");
  return {
    ...(fixed && (fixed[0] !== undefined && fixed.length === 1 ? { const: fixed[0] } : allow(fixed))),
    ...(allowed && (fixed ? { allOf: [allow(allowed)] } : allow(allowed))),
    ...exclude(formsIn("not_in") ?? []),
    ...(examples && examples.length > 0 && { examples }),
  };
}

/** Returns a schema that accepts only these values. With no values, the schema accepts nothing. */
function allow(values: Choice[]): OpenApiSchema {
  return values.length === 0 ? { not: {} } : { enum: values };
}

function bounds(given: GivenRules): OpenApiSchema {
  const lower = boundOf(given, { gt: "exclusiveMinimum", gte: "minimum" });
  const upper = boundOf(given, { lt: "exclusiveMaximum", lte: "maximum" });
  const [low = Number.NEGATIVE_INFINITY] = Object.values(lower);
  const [high = Number.POSITIVE_INFINITY] = Object.values(upper);
  // Bounds in reverse order exclude the values between them.
  return low > high ? { anyOf: [lower, upper] } : { ...lower, ...upper };
}

function boundOf(given: GivenRules, keywords: Readonly<Record<string, string>>): Readonly<Record<string, number>> {
  const finite = Object.entries(keywords).filter(([rule]) => Number.isFinite(given.get(rule)));
  return Object.fromEntries(finite.map(([rule, keyword]) => [keyword, Number(given.get(rule))]));
}

/** The JSON Schema string formats, by the rule that requires the format. */
const ruleFormats: Readonly<Record<string, string>> = {
  email: "email",
  hostname: "hostname",
  ipv4: "ipv4",
  uri: "uri",
  uri_ref: "uri-reference",
  uuid: "uuid",
};

function ofString(given: GivenRules): OpenApiSchema {
  const format = Object.keys(ruleFormats).find((rule) => given.get(rule) === true);
  const excluded = given.get("not_contains");
  const ofPatterns = [
    ...patternsOf(given).map((pattern) => ({ pattern })),
    ...(typeof excluded === "string" ? [{ not: { pattern: escapePattern(excluded) } }] : []),
    // JSON Schema's format does not accept an address with a zone, such as fe80::1%eth0.
    ...(given.get("ipv6") === true ? [{ anyOf: [{ format: "ipv6" }, { pattern: "^[^%]+%." }] }] : []),
  ];
  return {
    ...limits(given, { min_len: "minLength", max_len: "maxLength" }),
    ...(given.has("len") && { minLength: Number(given.get("len")), maxLength: Number(given.get("len")) }),
    ...(format !== undefined && { format: ruleFormats[format] }),
    ...(ofPatterns.length > 1 ? { allOf: ofPatterns } : ofPatterns[0]),
  };
}

function patternsOf(given: GivenRules): readonly string[] {
  const ids = Object.entries(formatPatterns).filter(([rule]) => given.get(rule) === true);
  const parts: readonly (readonly [rule: string, toPattern: (text: string) => string])[] = [
    ["pattern", (text) => text],
    ["prefix", (text) => `^${escapePattern(text)}`],
    ["suffix", (text) => `${escapePattern(text)}$`],
    ["contains", (text) => escapePattern(text)],
  ];
  const ofTexts = parts.flatMap(([rule, toPattern]) => {
    const text = given.get(rule);
    if (typeof text !== "string") return [];
    const pattern = toPattern(text);
    return isEcmaPattern(pattern) ? [pattern] : [];
  });
  return [...ids.map(([, pattern]) => pattern), ...ofTexts];
}

/** The patterns for string formats. A schema for tools has no formats, and JSON Schema lacks `tuuid` and `ulid`. */
const formatPatterns: Readonly<Record<string, string>> = {
  ipv4: "^(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}$",
  uuid: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
  tuuid: "^[0-9A-Fa-f]{32}$",
  ulid: "^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$",
};

/** Returns whether an RE2 pattern is also valid in ECMAScript, which JSON Schema uses. */
function isEcmaPattern(pattern: string): boolean {
  // RE2 and ECMAScript interpret this syntax differently. With the flag u, ECMAScript refuses syntax such as \A.
  if (/\(\?[^:]|\\[pP]/.test(pattern)) return false;
  try {
    return new RegExp(pattern, "u").unicode;
  } catch {
    return false;
  }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}]/g, String.raw`\$&`);
}
