import { ScalarType } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IntegerRange } from "../../../../src/protobuf/messages/json/numbers.ts";
// oxfmt-ignore
import { integerRangeOf, parseCanonicalInteger, parseExactInteger, parseFloatText
} from "../../../../src/protobuf/messages/json/numbers.ts";

function rangeOf(scalar: ScalarType): IntegerRange {
  const range = integerRangeOf(scalar);
  if (range === undefined) throw new Error("not an integer type");
  return range;
}

const int32 = rangeOf(ScalarType.INT32);
const uint32 = rangeOf(ScalarType.UINT32);
const int64 = rangeOf(ScalarType.INT64);
const uint64 = rangeOf(ScalarType.UINT64);

describe("parseCanonicalInteger()", () => {
  test.each<{ text: string; range: IntegerRange; want: bigint | number }>([
    { text: "0", range: int64, want: 0n },
    { text: "-7", range: int64, want: -7n },
    { text: "7", range: uint64, want: 7n },
    { text: "999999999999999", range: int64, want: 999999999999999n },
    { text: "-99999999999999", range: int64, want: -99999999999999n },
    { text: "1000000000000000", range: int64, want: 1000000000000000n },
    { text: "-999999999999999", range: int64, want: -999999999999999n },
    { text: "9007199254740993", range: int64, want: 9007199254740993n },
    { text: "9223372036854775807", range: int64, want: 9223372036854775807n },
    { text: "-9223372036854775808", range: int64, want: -9223372036854775808n },
    { text: "18446744073709551615", range: uint64, want: 18446744073709551615n },
    { text: "2147483647", range: int32, want: 2147483647 },
    { text: "-2147483648", range: int32, want: -2147483648 },
    { text: "4294967295", range: uint32, want: 4294967295 },
  ])("accepts $text in the $range.name range", ({ text, range, want }) => {
    expect(parseCanonicalInteger(text, range)).toBe(want);
  });

  test.each<{ why: string; text: string; range: IntegerRange }>([
    { why: "an empty string", text: "", range: int64 },
    { why: "only a sign", text: "-", range: int64 },
    { why: "a plus sign", text: "+7", range: int64 },
    { why: "minus zero", text: "-0", range: int64 },
    { why: "a leading zero", text: "007", range: int64 },
    { why: "two zeros", text: "00", range: int64 },
    { why: "two signs", text: "--7", range: int64 },
    { why: "the character before 0", text: "7/", range: int64 },
    { why: "the character after 9", text: "7:", range: int64 },
    { why: "a digit that is not ASCII", text: "7\u0667", range: int64 },
    { why: "16 characters with a letter", text: "100000000000000a", range: int64 },
    { why: "a leading space", text: " 7", range: int64 },
    { why: "a trailing line feed", text: "7\n", range: int64 },
    { why: "a hexadecimal number", text: "0x7", range: int64 },
    { why: "a fraction", text: "7.0", range: int64 },
    { why: "a number one above the int64 range", text: "9223372036854775808", range: int64 },
    { why: "a number one below the int64 range", text: "-9223372036854775809", range: int64 },
    { why: "a number one above the uint64 range", text: "18446744073709551616", range: uint64 },
    { why: "a negative number for uint64", text: "-1", range: uint64 },
    { why: "a number one above the int32 range", text: "2147483648", range: int32 },
    { why: "a number one below the int32 range", text: "-2147483649", range: int32 },
    { why: "a number one above the uint32 range", text: "4294967296", range: uint32 },
    { why: "a negative number for uint32", text: "-1", range: uint32 },
  ])("refuses $why as an integer", ({ text, range }) => expect(parseCanonicalInteger(text, range)).toBeUndefined());

  test("accepts every int64 only in its canonical form", () =>
    fc.assert(
      fc.property(fc.bigInt({ min: int64.min, max: int64.max }), (value) => {
        expect(parseCanonicalInteger(String(value), int64)).toBe(value);
        expect(parseCanonicalInteger(`0${value}`, int64)).toBeUndefined();
        expect(parseCanonicalInteger(`${value} `, int64)).toBeUndefined();
      }),
    ));

  test("accepts only text that equals the value's canonical form", () =>
    fc.assert(
      fc.property(fc.stringMatching(/^[-+ /0-9:xeE._n]{1,24}$/), (text) => {
        const value = parseCanonicalInteger(text, int64);
        if (value !== undefined) expect(String(value)).toBe(text);
      }),
    ));
});

describe("parseExactInteger()", () => {
  test.each<{ text: string; range: IntegerRange; want: bigint | number }>([
    { text: "7.0", range: int64, want: 7n },
    { text: "10000000000.0", range: int64, want: 10000000000n },
    { text: "1E+3", range: int64, want: 1000n },
    { text: "1500e-2", range: int64, want: 15n },
    { text: "-0", range: int64, want: 0n },
    { text: "0e999999999999", range: int64, want: 0n },
    { text: "0.0", range: int32, want: 0 },
    { text: `0.${"0".repeat(25)}1e26`, range: int64, want: 1n },
    { text: "0.012e3", range: int64, want: 12n },
    { text: "9.223372036854775807e18", range: int64, want: 9223372036854775807n },
    { text: "-9.223372036854775808e18", range: int64, want: -9223372036854775808n },
    { text: "2147483647.0", range: int32, want: 2147483647 },
  ])("accepts $text in the $range.name range", ({ text, range, want }) => {
    expect(parseExactInteger(text, range)).toBe(want);
  });

  test.each<{ why: string; text: string; range: IntegerRange }>([
    { why: "a fraction", text: "7.5", range: int64 },
    { why: "a fraction that is an integer when rounded to a double", text: "9223372036854775807.5", range: int64 },
    { why: "a number in exponent form above the int64 range", text: "9.223372036854775808e18", range: int64 },
    { why: "an exponent of 400 digits", text: `1e${"9".repeat(400)}`, range: int64 },
    { why: "a leading zero", text: "007", range: int64 },
    { why: "a dot without digits", text: "7.", range: int64 },
    { why: "a fraction without an integer part", text: ".7", range: int64 },
    { why: "an exponent without digits", text: "7e", range: int64 },
    { why: "an empty string", text: "", range: int64 },
    { why: "a negative number for uint64", text: "-1.0", range: uint64 },
    { why: "a number one above the int32 range", text: "2147483648.0", range: int32 },
  ])("refuses $why as an integer", ({ text, range }) => expect(parseExactInteger(text, range)).toBeUndefined());

  test("reads digits with any exponent exactly", () =>
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 25n }), fc.integer({ min: -25, max: 25 }), (digits, exponent) => {
        const scale = 10n ** BigInt(Math.abs(exponent));
        const isWhole = exponent >= 0 || digits % scale === 0n;
        const value = exponent >= 0 ? digits * scale : digits / scale;
        const want = isWhole && value <= uint64.max ? value : undefined;
        expect(parseExactInteger(`${digits}e${exponent}`, uint64)).toBe(want);
      }),
    ));
});

test.each([
  { text: "1.5", single: false, want: 1.5 },
  { text: "-0", single: false, want: -0 },
  { text: "5e-324", single: false, want: 5e-324 },
  { text: "3.4028234663852886e38", single: true, want: 3.4028234663852886e38 },
  { text: "NaN", single: false, want: Number.NaN },
  { text: "Infinity", single: true, want: Number.POSITIVE_INFINITY },
  { text: "-Infinity", single: true, want: Number.NEGATIVE_INFINITY },
  { text: "1e309", single: false, want: undefined },
  { text: "3.4028235e38", single: true, want: 3.4028234663852886e38 },
  { text: "3.5e38", single: true, want: undefined },
  { text: "0.1", single: true, want: 0.10000000149011612 },
  { text: "0.1", single: false, want: 0.1 },
  { text: "0x7", single: false, want: undefined },
  { text: "", single: false, want: undefined },
])('parseFloatText() returns $want for "$text" (single precision: $single)', ({ text, single, want }) => {
  expect(parseFloatText(text, single)).toBe(want);
});
