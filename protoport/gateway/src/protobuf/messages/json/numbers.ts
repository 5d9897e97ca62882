import { ScalarType } from "@bufbuild/protobuf";

/** The values that a protobuf integer type can have, from `min` to `max` inclusive. */
export interface IntegerRange {
  readonly name: "int32" | "uint32" | "int64" | "uint64";
  readonly min: bigint;
  readonly max: bigint;
  /** Whether messages store the value as a `bigint` rather than a `number`. */
  readonly isBigInt: boolean;
}

/** The range of `int32` and of enum numbers. */
export const int32: IntegerRange = { name: "int32", min: -(2n ** 31n), max: 2n ** 31n - 1n, isBigInt: false };
const uint32: IntegerRange = { name: "uint32", min: 0n, max: 2n ** 32n - 1n, isBigInt: false };
const int64: IntegerRange = { name: "int64", min: -(2n ** 63n), max: 2n ** 63n - 1n, isBigInt: true };
const uint64: IntegerRange = { name: "uint64", min: 0n, max: 2n ** 64n - 1n, isBigInt: true };

const roundedPattern = /^(-?[1-9][0-9]{15,308})\.50$/;

/** Returns the digits of a rounded integer, if any. `readParsedBody` marks these integers with the fraction `.50`. */
export function digitsOfRoundedInteger(text: string): string | undefined {
  return roundedPattern.exec(text)?.[1];
}

/** Returns an integer type's range, or `undefined` for any other scalar type. */
export function integerRangeOf(scalar: ScalarType): IntegerRange | undefined {
  switch (scalar) {
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return int32;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return uint32;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return int64;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return uint64;
    default:
      return undefined;
  }
}

/** Maximum digits in a 64-bit integer. 2^64-1 has 20 digits. */
const maxDigits = 20;
const canonicalInteger = /^(?:0|-?[1-9][0-9]{0,19})$/;
/** A double represents any 15 digits exactly (2^53 has 16), so short ids need no arithmetic with BigInt. */
export const maxExactDigits = 15;

/**
 * Parses an integer that is in range and in canonical form, `0` or `-?[1-9][0-9]*` in ASCII. Each value has only one
 * spelling, so that caches, logs and authorization rules before a service see the same id as the handler.
 *
 * @returns the value, a `bigint` if the range is 64 bits wide, or `undefined` for any other text
 */
export function parseCanonicalInteger(text: string, range: IntegerRange): bigint | number | undefined {
  if (text.length > maxExactDigits) return canonicalInteger.test(text) ? withinRange(BigInt(text), range) : undefined;
  const value = parseShortInteger(text);
  if (Number.isNaN(value)) return undefined;
  if (range.isBigInt) return value < 0 && range.min === 0n ? undefined : BigInt(value);
  return value < range.min || value > range.max ? undefined : value;
}

// Parses a canonical integer that a double represents exactly, or returns NaN. A regular expression and `Number` take
// three times as long.
function parseShortInteger(text: string): number {
  const isNegative = text.charCodeAt(0) === 0x2d;
  let at = isNegative ? 1 : 0;
  const leading = text.charCodeAt(at);
  if (leading === 0x30) return text.length === 1 ? 0 : Number.NaN;
  // The character code is NaN if the text is empty or only a sign.
  if (Number.isNaN(leading)) return Number.NaN;
  let value = 0;
  for (; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return isNegative ? -value : value;
}

// Matches a JSON number (RFC 8259 §6).
const jsonNumber = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * Parses an integer exactly, in any spelling that proto3 JSON allows, such as `7`, `7.0` or `1e3`. The parser works on
 * the digits, because a double would turn 9007199254740993 into 9007199254740992.
 *
 * @returns `undefined` when the text is not a number, has a fraction, or is out of range
 */
export function parseExactInteger(text: string, range: IntegerRange): bigint | number | undefined {
  const canonical = parseCanonicalInteger(text, range);
  if (canonical !== undefined) return canonical;
  const match = jsonNumber.exec(text);
  if (match === null) return undefined;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const digits = (whole + fraction).replace(/^0+/, "");
  let end = digits.length;
  // A loop removes the zeros, because /0+$/ takes quadratic time for many zeros before another digit.
  while (digits.endsWith("0", end)) end--;
  if (end === 0) return range.isBigInt ? 0n : 0;
  const zeros = Number(exponentText) - fraction.length + digits.length - end;
  // A negative number of zeros means that the fraction is not zero.
  if (zeros < 0 || end + zeros > maxDigits) return undefined;
  return withinRange(BigInt(sign + digits.slice(0, end) + "0".repeat(zeros)), range);
}

function withinRange(value: bigint, range: IntegerRange): bigint | number | undefined {
  if (value < range.min || value > range.max) return undefined;
  return range.isBigInt ? value : Number(value);
}

/**
 * Parses a `float` or `double` from proto3 JSON, which is a number (RFC 8259 §6), `NaN`, `Infinity` or `-Infinity`.
 * Returns `undefined` for any other text, and for a number that is too large.
 */
export function parseFloatText(text: string, single: boolean): number | undefined {
  if (text === "NaN") return Number.NaN;
  if (text === "Infinity") return Number.POSITIVE_INFINITY;
  if (text === "-Infinity") return Number.NEGATIVE_INFINITY;
  if (!jsonNumber.test(text)) return undefined;
  const value = single ? Math.fround(Number(text)) : Number(text);
  return Number.isFinite(value) ? value : undefined;
}
