import type { integerRangeOf } from "../protobuf/index.ts";

// Regular expressions that match exactly the texts that the gateway accepts (ECMA-262, as JSON Schema recommends). The
// patterns use only syntax that RE2, Java and Python share, because generators copy patterns into validators.

type IntegerRange = NonNullable<ReturnType<typeof integerRangeOf>>;

/** Returns a pattern for decimal integers in canonical form within a range. */
export function integerPattern({ min, max }: IntegerRange): string {
  if (min === 0n) return `^(0|${positiveUpTo(String(max))})$`;
  // The minimum has its own alternative in the pattern, because its absolute value is the maximum plus one.
  return `^(0|-?${positiveUpTo(String(max))}|${min})$`;
}

/** Returns a pattern for the integers from 1 to a maximum. The maximum must have at least two digits. */
function positiveUpTo(max: string): string {
  const first = Number(max[0]);
  const shorter = `[1-9][0-9]{0,${max.length - 2}}`;
  const below = first > 1 ? `${digitsFrom(1, first - 1)}${digits(max.length - 1)}|` : "";
  return `(${shorter}|${below}${first}${digitsUpTo(max.slice(1))})`;
}

/** Returns a pattern for integers up to `max` that have as many digits as `max`. */
function digitsUpTo(max: string): string {
  const first = Number(max[0]);
  const rest = max.slice(1);
  if (/^0*$/.test(max)) return max;
  if (rest === "") return digitsFrom(0, first);
  const equal = `${first}${digitsUpTo(rest)}`;
  return first === 0 ? equal : `(${digitsFrom(0, first - 1)}${digits(rest.length)}|${equal})`;
}

function digits(count: number): string {
  return count === 1 ? "[0-9]" : `[0-9]{${count}}`;
}

function digitsFrom(low: number, high: number): string {
  return low === high ? String(low) : `[${low}-${high}]`;
}

/** Maximum number of seconds that a google.protobuf.Duration can have (duration.proto). */
const durationSecondsMax = "315576000000";

const seconds = `([0-9]{1,${durationSecondsMax.length - 1}}|${digitsUpTo(durationSecondsMax)})`;

/** The pattern for a google.protobuf.Duration, which is a number of seconds with up to nine decimal places. */
export const durationPattern: string = `^-?${seconds}(\\.[0-9]{1,9})?s$`;

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
