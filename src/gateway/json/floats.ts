import { isJsonNumber } from "./integers.ts";

/**
 * Parses a `float` or `double` as proto3 JSON writes it: a number of RFC 8259 §6, or `NaN`, `Infinity` or `-Infinity`.
 *
 * @param single - whether the value is a 32-bit float
 * @returns `undefined` for any other text, and for a number that is too large
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

function parseFiniteNumber(text: string, single: boolean): number | undefined {
  const value = single ? Math.fround(Number(text)) : Number(text);
  return Number.isFinite(value) ? value : undefined;
}
