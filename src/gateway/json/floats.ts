import { isJsonNumber } from "./integers.ts";

/**
 * Parses a `float` or `double` as proto3 JSON spells it: a number of RFC 8259 §6, or one of the names
 * `NaN`, `Infinity` and `-Infinity`.
 *
 * @param single - whether the value has to fit a 32-bit float
 * @returns the value, or `undefined` for any other text and for a number that is too large
 */
export function parseFloatText(text: string, single: boolean): number | undefined {
  switch (text) {
    case "NaN":
      return Number.NaN;
    case "Infinity":
      return Number.POSITIVE_INFINITY;
    case "-Infinity":
      return Number.NEGATIVE_INFINITY;
    default:
      return isJsonNumber(text) ? parseFiniteNumber(text, single) : undefined;
  }
}

// The largest float, (2 - 2^-23) * 2^127.
const floatMax = Math.fround(3.4028234663852886e38);

/** The value of a number token; `undefined` when it is beyond the type's largest finite value. */
export function parseFiniteNumber(numberText: string, single: boolean): number | undefined {
  const value = Number(numberText);
  if (!single || Math.abs(value) <= floatMax) return Number.isFinite(value) ? value : undefined;
  // A little above the largest float there are decimals that still round to it.
  const rounded = Math.fround(value);
  return Number.isFinite(rounded) ? rounded : undefined;
}
