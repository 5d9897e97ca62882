import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { FieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { shortestFloat } from "../messages/json/index.ts";
import type { FieldKeywords, OpenApiSchema } from "../openapi/index.ts";

// The standard rules of buf.validate as keywords of JSON Schema. Rules that it cannot express are left out: the schema
// then accepts more than the server, and less only where patterns of ECMAScript treat spaces and line ends beyond ASCII
// differently. 64-bit integers, and keys of maps that are not strings, are left out, because they are strings in JSON.

/** The rules of one value that are set, by their names in `buf/validate/validate.proto`. */
type GivenRules = ReadonlyMap<string, unknown>;

/**
 * Returns the keywords of a field's rules.
 *
 * @param rulesType - the descriptor of buf.validate.FieldRules
 */
export function keywordsOf(field: DescField, rules: FieldRules, rulesType: DescMessage): FieldKeywords | undefined {
  const { case: kind, value } = rules.type;
  if (kind === undefined || isIgnored(rules)) return undefined;
  const given = givenRules(value, kind, rulesType);
  if (kind === "repeated") {
    const { items } = value;
    const unique = given.get("unique") === true ? { uniqueItems: true } : {};
    return {
      value: { ...limits(given, { min_items: "minItems", max_items: "maxItems" }), ...unique },
      ...(items && { element: keywordsOfValue(items, rulesType) }),
    };
  }
  if (kind === "map") {
    const { keys, values } = value;
    return {
      value: limits(given, { min_pairs: "minProperties", max_pairs: "maxProperties" }),
      ...(keys?.type.case === "string" && { key: keywordsOfValue(keys, rulesType) }),
      ...(values && { element: keywordsOfValue(values, rulesType) }),
    };
  }
  return field.fieldKind === "list" || field.fieldKind === "map"
    ? undefined
    : { value: keywordsOfValue(rules, rulesType) };
}

const notIgnored: Ignore = 0;

/** Returns whether some values are exempt from the rules. */
function isIgnored({ ignore }: FieldRules): boolean {
  return ignore !== notIgnored;
}

/** Returns the keywords of the rules of one value: that of a singular field, an element or a key. */
function keywordsOfValue(rules: FieldRules, rulesType: DescMessage): OpenApiSchema {
  const { case: kind, value } = rules.type;
  if (kind === undefined || isIgnored(rules)) return {};
  const given = givenRules(value, kind, rulesType);
  if (kind === "string") return { ...choices(given), ...ofString(given) };
  if (numberKinds.has(kind)) return { ...choices(given), ...bounds(given) };
  return kind === "bool" ? choices(given) : {};
}

const numberKinds: ReadonlySet<string> = new Set("float double int32 uint32 sint32 fixed32 sfixed32".split(" "));

function givenRules(value: Message, kind: string, rulesType: DescMessage): GivenRules {
  const type = rulesType.field[kind]?.message;
  if (type === undefined) return new Map();
  const given = reflect(type, value);
  const set = given.fields.filter((field) => given.isSet(field));
  // A 32-bit float is written with the fewest digits that a reader rounds to it, as in JSON.
  const read = kind === "float" ? (rule: unknown): unknown => (hasDigits(rule) ? shortestFloat(rule) : rule) : same;
  return new Map(
    set.map((field) => [
      field.name,
      field.fieldKind === "list" ? Array.from(given.get(field), read) : read(given.get(field)),
    ]),
  );
}

function same(rule: unknown): unknown {
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

function isChoice(value: unknown): value is Choice {
  return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

function choices(given: GivenRules): OpenApiSchema {
  const value = given.get("const");
  const allowed = given.get("in");
  const excluded = given.get("not_in");
  const examples = given.get("example");
  return {
    ...(isChoice(value) && { const: value }),
    ...(Array.isArray(allowed) && allowed.every(isChoice) && { enum: allowed }),
    ...(Array.isArray(excluded) && excluded.every(isChoice) && { not: { enum: excluded } }),
    ...(Array.isArray(examples) && examples.every(isChoice) && { examples }),
  };
}

function bounds(given: GivenRules): OpenApiSchema {
  const lower = Number(given.get("gte") ?? given.get("gt") ?? Number.NEGATIVE_INFINITY);
  const upper = Number(given.get("lte") ?? given.get("lt") ?? Number.POSITIVE_INFINITY);
  // Bounds in reverse order exclude the values between them.
  if (lower >= upper) return {};
  const all = { gt: "exclusiveMinimum", gte: "minimum", lt: "exclusiveMaximum", lte: "maximum" };
  const finite = Object.entries(all).filter(([rule]) => Number.isFinite(given.get(rule)));
  return Object.fromEntries(finite.map(([rule, keyword]) => [keyword, Number(given.get(rule))]));
}

/** The formats of strings, by the rules that require them. */
const formats: Readonly<Record<string, string>> = {
  email: "email",
  hostname: "hostname",
  ipv4: "ipv4",
  ipv6: "ipv6",
  uri: "uri",
  uri_ref: "uri-reference",
  uuid: "uuid",
};

function ofString(given: GivenRules): OpenApiSchema {
  const format = Object.keys(formats).find((rule) => given.get(rule) === true);
  const patterns = patternsOf(given);
  const ofPatterns = patterns.map((pattern) => ({ pattern }));
  return {
    ...limits(given, { min_len: "minLength", max_len: "maxLength" }),
    ...(given.has("len") && { minLength: Number(given.get("len")), maxLength: Number(given.get("len")) }),
    ...(format !== undefined && { format: formats[format] }),
    ...(ofPatterns.length > 1 ? { allOf: ofPatterns } : ofPatterns[0]),
  };
}

function patternsOf(given: GivenRules): readonly string[] {
  const parts: readonly (readonly [rule: string, toPattern: (text: string) => string])[] = [
    ["pattern", (text) => text],
    ["prefix", (text) => `^${escapePattern(text)}`],
    ["suffix", (text) => `${escapePattern(text)}$`],
    ["contains", (text) => escapePattern(text)],
  ];
  return parts.flatMap(([rule, toPattern]) => {
    const text = given.get(rule);
    if (typeof text !== "string") return [];
    const pattern = toPattern(text);
    return isEcmaPattern(pattern) ? [pattern] : [];
  });
}

/** Returns whether a pattern of RE2 is also one of ECMAScript, which JSON Schema uses. */
function isEcmaPattern(pattern: string): boolean {
  // RE2 reads these differently from ECMAScript.
  if (/\(\?[^:]|\\[AzQEpPC]|\[\[:/.test(pattern)) return false;
  try {
    return new RegExp(pattern, "u").unicode;
  } catch {
    return false;
  }
}

/** Returns a pattern that matches exactly the given text. */
function escapePattern(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}]/g, String.raw`\$&`);
}
