import { ScalarType } from "@bufbuild/protobuf";

/** Smallest int64, -2^63. */
export const int64Min: bigint = -(2n ** 63n);
/** Largest int64, 2^63-1. */
export const int64Max: bigint = 2n ** 63n - 1n;
/** Largest uint64, 2^64-1. */
export const uint64Max: bigint = 2n ** 64n - 1n;

/** The values an integer type of protobuf can hold, both ends included. */
export interface IntegerRange {
  /** The type's name, for error messages. */
  readonly name: "int32" | "uint32" | "int64" | "uint64";
  readonly min: bigint;
  readonly max: bigint;
  /** Whether messages hold the value as a `bigint`; otherwise as a `number`. */
  readonly big: boolean;
}

const int32: IntegerRange = { name: "int32", min: -(2n ** 31n), max: 2n ** 31n - 1n, big: false };
const uint32: IntegerRange = { name: "uint32", min: 0n, max: 2n ** 32n - 1n, big: false };
const int64: IntegerRange = { name: "int64", min: int64Min, max: int64Max, big: true };
const uint64: IntegerRange = { name: "uint64", min: 0n, max: uint64Max, big: true };

/** The range of a scalar type, or `undefined` when it is not an integer type. */
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

/** The range of enum numbers: int32. */
export const enumNumberRange: IntegerRange = int32;

// 15 digits always fit a double exactly (2^53 has 16), so short ids need no BigInt arithmetic on the way.
const exactDigitsMax = 15;
// The longest canonical integer is -9223372036854775808, 20 characters (as is 2^64-1).
const canonicalLengthMax = 20;

/**
 * Parses the one canonical spelling of an integer: `0` or `-?[1-9][0-9]*`, ASCII, in range.
 *
 * No sign but minus, no leading zeros, no spaces, no `-0`, no exponent: one spelling per value, so that
 * caches, logs and authorisation rules in front of a service see the id that its handler sees.
 *
 * @returns the value (a `bigint` where the range is 64 bits wide), or `undefined` for any other text
 */
export function parseCanonicalInteger(text: string, range: IntegerRange): bigint | number | undefined {
  const length = text.length;
  if (length === 0 || length > canonicalLengthMax) return undefined;
  const first = text.charCodeAt(0) === 0x2d ? 1 : 0; // 0x2d is "-".
  const digits = length - first;
  if (digits === 0) return undefined;
  // 0x30 is "0": alone it is zero, in front of anything or after a minus it is another spelling.
  if (text.charCodeAt(first) === 0x30 && length > 1) return undefined;
  let value = 0;
  for (let at = first; at < length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  if (digits > exactDigitsMax) return withinRange(BigInt(text), range);
  if (first === 1) value = -value;
  if (range.big) return value < 0 && range.min === 0n ? undefined : BigInt(value);
  return value < range.min || value > range.max ? undefined : value;
}

// The number grammar of RFC 8259 §6.
const jsonNumber = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Whether the text is a number of RFC 8259 §6: no leading zeros, plus signs, spaces or hexadecimal. */
export function isJsonNumber(text: string): boolean {
  return jsonNumber.test(text);
}

/**
 * Parses every spelling of an integer that proto3 JSON allows (`7`, `7.0`, `1e3`), exactly.
 *
 * Works on the digits, never on a double, so that 9007199254740993 is not 9007199254740992.
 *
 * @returns the value, or `undefined` when the text is no number, has a fraction, or is out of range
 */
export function parseExactInteger(text: string, range: IntegerRange): bigint | number | undefined {
  const canonical = parseCanonicalInteger(text, range);
  if (canonical !== undefined) return canonical;
  const match = jsonNumber.exec(text);
  if (match === null) return undefined;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const digits = whole + fraction;
  const end = endWithoutZeros(digits);
  if (end === 0) return range.big ? 0n : 0;
  const start = startWithoutZeros(digits);
  const exponent = Number(exponentText) - fraction.length + (digits.length - end);
  // A negative exponent here means a fraction that is not zero; more than 20 digits fit no range.
  if (exponent < 0 || end - start + exponent > canonicalLengthMax) return undefined;
  return withinRange(BigInt(sign + digits.slice(start, end) + "0".repeat(exponent)), range);
}

function withinRange(value: bigint, range: IntegerRange): bigint | number | undefined {
  if (value < range.min || value > range.max) return undefined;
  return range.big ? value : Number(value);
}

// Loops, not /0+$/: that expression is quadratic on a long run of zeros followed by another digit.
function endWithoutZeros(digits: string): number {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end--;
  return end;
}

function startWithoutZeros(digits: string): number {
  let start = 0;
  while (digits.charCodeAt(start) === 0x30) start++;
  return start;
}
