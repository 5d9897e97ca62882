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

/** The value of a number token; `undefined` when it is beyond the type's largest finite value. */
export function parseFiniteNumber(numberText: string, single: boolean): number | undefined {
  const value = Number(numberText);
  return Number.isFinite(single ? Math.fround(value) : value) ? value : undefined;
}
