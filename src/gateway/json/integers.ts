import { ScalarType } from "@bufbuild/protobuf";
import { FieldProblem, quote } from "./field-problem.ts";

/** The values of an integer type of protobuf, from `min` to `max` inclusive. */
export interface IntegerRange {
  /** The type's name, for error messages. */
  readonly name: "int32" | "uint32" | "int64" | "uint64";
  readonly min: bigint;
  readonly max: bigint;
  /** Whether messages store the value as a `bigint` rather than a `number`. */
  readonly big: boolean;
}

const int32: IntegerRange = { name: "int32", min: -(2n ** 31n), max: 2n ** 31n - 1n, big: false };
const uint32: IntegerRange = { name: "uint32", min: 0n, max: 2n ** 32n - 1n, big: false };
const int64: IntegerRange = { name: "int64", min: -(2n ** 63n), max: 2n ** 63n - 1n, big: true };
const uint64: IntegerRange = { name: "uint64", min: 0n, max: 2n ** 64n - 1n, big: true };

/** Returns the range of a scalar type; `undefined` when it is not an integer type. */
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

// A double is exact for any 15 digits (2^53 has 16), so short ids need no BigInt arithmetic.
const exactDigitsMax = 15;
// The longest canonical integer is -9223372036854775808, 20 characters (as is 2^64-1).
const canonicalLengthMax = 20;

/**
 * Parses an integer in canonical form: `0` or `-?[1-9][0-9]*`, ASCII, in range.
 *
 * Plus signs, leading zeros, spaces, `-0` and exponents are refused. Each value has one spelling, so that caches, logs
 * and authorisation rules in front of a service see the id that its handler sees.
 *
 * @returns the value, a `bigint` if the range is 64 bits wide; `undefined` for any other text
 */
export function parseCanonicalInteger(text: string, range: IntegerRange): bigint | number | undefined {
  const length = text.length;
  if (length > canonicalLengthMax) return undefined;
  const first = text.charCodeAt(0) === 0x2d ? 1 : 0; // 0x2d is "-".
  const digits = length - first;
  if (digits === 0) return undefined;
  // 0x30 is "0", which is canonical only on its own: neither before other digits nor after a minus.
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

/** Creates a parser of integers in canonical form, which throws a {@link FieldProblem} for any other text. */
export function createIntegerParser(
  range: IntegerRange,
  longAsString: boolean,
): (text: string) => bigint | number | string {
  return (text) => {
    const value = parseCanonicalInteger(text, range);
    if (value === undefined) throw integerProblem(text, range);
    return longAsString ? String(value) : value;
  };
}

// The number grammar of RFC 8259 §6.
const jsonNumber = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Returns whether the text is a number of RFC 8259 §6: without leading zeros, plus signs, spaces or hexadecimal. */
export function isJsonNumber(text: string): boolean {
  return jsonNumber.test(text);
}

/**
 * Parses an integer in any spelling that proto3 JSON allows (`7`, `7.0`, `1e3`), exactly.
 *
 * It works on the digits and never on a double, which would turn 9007199254740993 into 9007199254740992.
 *
 * @returns `undefined` when the text is not a number, has a fraction, or is out of range
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
  // A negative exponent here means a fraction other than zero. More than 20 digits are out of every range.
  if (exponent < 0 || end - start + exponent > canonicalLengthMax) return undefined;
  return withinRange(BigInt(sign + digits.slice(start, end) + "0".repeat(exponent)), range);
}

function withinRange(value: bigint, range: IntegerRange): bigint | number | undefined {
  if (value < range.min || value > range.max) return undefined;
  return range.big ? value : Number(value);
}

// Loops instead of /0+$/, which takes quadratic time for many zeros followed by another digit.
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

/** Returns the error for a text that is not an integer of the range, or not in the required spelling. */
export function integerProblem(text: string, range: IntegerRange): FieldProblem {
  return new FieldProblem(`${quote(text)} is not ${nounOf(range)}`);
}

/** Returns the type's name with its article, for error messages: `an int64`, `a uint32`. */
export function nounOf(range: IntegerRange): string {
  return range.min === 0n ? `a ${range.name}` : `an ${range.name}`;
}
