import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { integerRangeOf } from "../protobuf/index.ts";
import type { OpenApiSchema } from "./open-api-document.ts";

// Regular expressions that match exactly the texts that the gateway accepts (ECMA-262, as JSON Schema recommends). The
// patterns use only syntax that RE2, Java and Python share, because generators copy patterns into validators.

type PatternRange = NonNullable<ReturnType<typeof integerRangeOf>>;

/** Returns a pattern for decimal integers in canonical form within a range. */
export function integerPattern({ min, max }: PatternRange): string {
  if (min === 0n) return `^(0|${positiveUpTo(String(max))})$`;
  // The minimum has its own alternative in the pattern, because its absolute value is the maximum plus one.
  return `^(0|-?${positiveUpTo(String(max))}|${min})$`;
}

/** Returns a pattern for the integers from 1 to a maximum. The maximum must have at least two digits. */
function positiveUpTo(max: string): string {
  const first = Number(max[0]);
  const shorter = `[1-9][0-9]{0,${max.length - 2}}`;
  const below = first > 1 ? `${digitsFrom(1, first - 1)}${digitsPattern(max.length - 1)}|` : "";
  return `(${shorter}|${below}${first}${digitsUpTo(max.slice(1))})`;
}

/** Returns a pattern for integers up to `max` that have as many digits as `max`. */
function digitsUpTo(max: string): string {
  const first = Number(max[0]);
  const rest = max.slice(1);
  if (/^0*$/.test(max)) return max;
  if (rest === "") return digitsFrom(0, first);
  const equal = `${first}${digitsUpTo(rest)}`;
  return first === 0 ? equal : `(${digitsFrom(0, first - 1)}${digitsPattern(rest.length)}|${equal})`;
}

function digitsPattern(count: number): string {
  return count === 1 ? "[0-9]" : `[0-9]{${count}}`;
}

function digitsFrom(low: number, high: number): string {
  return low === high ? String(low) : `[${low}-${high}]`;
}

/** Maximum number of seconds that a google.protobuf.Duration can have (duration.proto). */
const maxDurationDigits = "315576000000";

const secondsPattern = `([0-9]{1,${maxDurationDigits.length - 1}}|${digitsUpTo(maxDurationDigits)})`;

/** The pattern for a google.protobuf.Duration, which is a number of seconds with up to nine decimal places. */
export const durationPattern: string = `^-?${secondsPattern}(\\.[0-9]{1,9})?s$`;

const base64Digit = "[A-Za-z0-9+/_-]";

/** The pattern for bytes in base64 or base64url, with or without padding. */
export const base64Pattern: string = `^(${base64Digit}{4})*(${base64Digit}{2}(==)?|${base64Digit}{3}=?)?$`;

const head = "[A-Za-z_]";
const tail = "[A-Za-z0-9_]*";
/** Patterns for names with an underscore that change if converted to lowerCamelCase and back. */
const irreversibleNames = [
  `(${head}${tail})?_([0-9_]${tail})?`,
  `(${head}${tail})?[A-Z]${tail}_${tail}`,
  `(${head}${tail})?_${tail}[A-Z]${tail}`,
];

/** The pattern for a google.protobuf.FieldMask in JSON. See `parseFieldMask` for the syntax. */
export const fieldMaskPattern: string = fieldPaths([
  "\\*",
  "[A-Za-z][A-Za-z0-9]*",
  ...irreversibleNames,
  "`([a-z][a-z0-9]*)?[A-Z][A-Za-z0-9]*`",
]);

/** The pattern for a google.protobuf.FieldMask in a URL. In a URL, every name may also be a proto name. */
export const urlFieldMaskPattern: string = fieldPaths(["\\*", `${head}${tail}`, `\`${head}${tail}\``]);

function fieldPaths(names: readonly string[]): string {
  const name = `(${names.join("|")})`;
  return `^(${name}([.,]${name})*)?$`;
}

/** A value's location. A 64-bit integer is a string in JSON, but an integer in a parameter. */
export type ValuePlace = "json" | "parameter";

/**
 * Returns the schema for a scalar in the proto3 JSON mapping. Formats come from the OpenAPI format registry. With
 * `int64Numbers`, a 64-bit integer in JSON is a number if a double can represent it exactly.
 */
export function schemaOfScalar(scalar: ScalarType, place: ValuePlace, int64Numbers: boolean): OpenApiSchema {
  const range = integerRangeOf(scalar);
  if (range !== undefined) {
    const { name: format, min, max, isBigInt } = range;
    if (isBigInt && place === "json") {
      const type = int64Numbers ? ["integer", "string"] : "string";
      return { type, format, pattern: integerPattern(range) };
    }
    // Tools know the ranges of int32 and int64 from the format.
    if (min < 0n) return { type: "integer", format };
    return { type: "integer", format, minimum: 0, maximum: isBigInt ? maxUint64 : Number(max) };
  }
  switch (scalar) {
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float", minimum: -maxFloat, maximum: maxFloat };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64", pattern: base64Pattern };
    default:
      return { type: "string" };
  }
}

/** The largest double below 2^64. The maximum uint64 would be rounded up to 2^64. */
const maxUint64 = 18_446_744_073_709_549_568;

/** The largest finite 32-bit float, with as few digits as JSON requires. */
const maxFloat = 3.4028235e38;

/** Returns the schema for a map's keys in JSON, or `undefined` if every string is a valid key. */
export function schemaOfMapKeys(key: ScalarType): OpenApiSchema | undefined {
  const range = integerRangeOf(key);
  if (range !== undefined) return { pattern: integerPattern(range) };
  return key === ScalarType.BOOL ? { enum: ["true", "false"] } : undefined;
}

const anySchema: OpenApiSchema = {};

function fieldMask(pattern: string): OpenApiSchema {
  return { type: "string", pattern, description: "Field paths, separated by commas." };
}

/** Schemas for well-known types with their own JSON form, except wrappers. Wrappers are described as scalars. */
const wellKnownSchemas: Readonly<Record<string, OpenApiSchema>> = {
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string", description: "URL of the type of the message." } },
    required: ["@type"],
    additionalProperties: true,
  },
  "google.protobuf.Duration": { type: "string", pattern: durationPattern },
  "google.protobuf.Empty": { type: "object" },
  "google.protobuf.FieldMask": fieldMask(fieldMaskPattern),
  "google.protobuf.ListValue": { type: "array", items: anySchema },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Value": anySchema,
};

/** Returns the schema for a well-known type with its own JSON form, or `undefined` for wrappers and other types. */
export function schemaOfWellKnown(desc: DescMessage, place: ValuePlace = "json"): OpenApiSchema | undefined {
  if (desc.typeName === "google.protobuf.FieldMask" && place === "parameter") return fieldMask(urlFieldMaskPattern);
  return wellKnownSchemas[desc.typeName];
}
