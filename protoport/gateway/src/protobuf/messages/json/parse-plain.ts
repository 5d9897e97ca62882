import type { JsonValue } from "@bufbuild/protobuf";
import { maxJsonDepth } from "./json-scanner.ts";
import { maxExactDigits } from "./numbers.ts";

/** The value that `JSON.parse` returned for a JSON text, with facts about the text. */
interface ParsedJson {
  readonly value: JsonValue;
  /** Number of strings in the text, including names. The value has fewer strings if an object has a duplicate name. */
  readonly strings: number;
  /** Whether a string may have a lone surrogate. */
  readonly mayHaveLoneSurrogates: boolean;
}

/** The mutable state while a JSON text's values are read. */
export interface ReadState {
  /** Number of strings read so far, including names. */
  strings: number;
  /** Whether a string may have a lone surrogate. */
  readonly mayHaveLoneSurrogates: boolean;
}

/**
 * Parses a JSON text with `JSON.parse`. A duplicate name was dropped if the value has fewer strings than the text.
 *
 * @param canonical - whether integers must be in canonical form
 * @returns `undefined` if the text is not JSON. Also returns `undefined` if only the exact reader can read the text,
 * for the reasons in {@link scanText}
 */
export function parsePlain(text: string, canonical: boolean): ParsedJson | undefined {
  const scan = scanText(text, canonical);
  if (scan === undefined) return undefined;
  try {
    const value: JsonValue = JSON.parse(text);
    return { value, strings: scan.strings, mayHaveLoneSurrogates: scan.hasUnicodeEscapes };
  } catch {
    return undefined;
  }
}

/** Counts the strings in a value, including names. Returns NaN for a lone surrogate or an infinite number. */
export function countStrings(value: JsonValue, mayHaveLoneSurrogates: boolean): number {
  if (typeof value === "string") return mayHaveLoneSurrogates && !value.isWellFormed() ? Number.NaN : 1;
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countStrings(item, mayHaveLoneSurrogates);
    return count;
  }
  for (const name in value) count += 1 + countStrings(value[name] ?? null, mayHaveLoneSurrogates);
  return count;
}

interface TextScan {
  /** Number of strings in the text, including names. */
  readonly strings: number;
  /** Whether a string has an escape such as `\u0041`. Lone surrogates require such an escape. */
  readonly hasUnicodeEscapes: boolean;
}

/**
 * Scans a JSON text for problems that `JSON.parse` does not report. Counts the strings, because `JSON.parse` drops a
 * duplicate name's first value. Finds numbers with a fraction or an exponent that `JSON.parse` may round to an integer.
 *
 * The scan skips string contents, and checks each character between strings. The result is meaningless if the text is
 * not JSON.
 *
 * @param canonical - whether integers must be in canonical form
 * @returns `undefined` if the text has a number that may be rounded to an integer, a name with an escape, or more than
 * 100 levels. V8 13 and 14 may confuse a name that has an escape with another name (nodejs/node#63785)
 */
function scanText(text: string, canonical: boolean): TextScan | undefined {
  let strings = 0;
  let depth = 0;
  let hasUnicodeEscapes = false;
  let backslash = text.indexOf("\\");
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) {
      strings++;
      let isEscaped = false;
      at = text.indexOf('"', at + 1);
      // `backslash` is never before this string, because JSON has backslashes only in strings.
      while (backslash >= 0 && backslash < at) {
        isEscaped = true;
        hasUnicodeEscapes ||= text.charCodeAt(backslash + 1) === 0x75;
        at = backslash + 1 === at ? text.indexOf('"', at + 1) : at;
        backslash = text.indexOf("\\", backslash + 2);
      }
      if (at < 0 || (isEscaped && isName(text, at))) return undefined;
    } else if (unit <= 0x3a && unit !== 0x2e) {
      // Most characters between strings are digits, signs, commas, colons and white space, which have no problems.
      continue;
    } else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > maxJsonDepth) return undefined;
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === 0x2e || ((unit === 0x65 || unit === 0x45) && isDigit(text.charCodeAt(at - 1)))) {
      const [start, end] = [startOfNumber(text, at), endOfNumber(text, at)];
      if (!isFarFromIntegers(text, start, at, end) && losesPrecision(text.slice(start, end), canonical))
        return undefined;
      at = end - 1;
    }
  }
  return { strings, hasUnicodeEscapes };
}

// Returns whether the string that ends at `end` is a name. A colon follows a name, possibly after white space.
function isName(text: string, end: number): boolean {
  let at = end + 1;
  while (isSpace(text.charCodeAt(at))) at++;
  return text.charCodeAt(at) === 0x3a;
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/** Maximum digits before the point, including a sign, with which a double still represents tenths. */
const maxFractionDigits = 14;

// Returns whether the first digit after the decimal point is 1 to 8. With a digit from 1 to 8, neither the number nor
// its double can be an integer. Most fractions pass this check, which is much faster than parsing the number.
function isFarFromIntegers(text: string, start: number, point: number, end: number): boolean {
  const firstFractionDigit = text.charCodeAt(point + 1);
  if (
    text.charCodeAt(point) !== 0x2e ||
    firstFractionDigit < 0x31 ||
    firstFractionDigit > 0x38 ||
    point - start > maxFractionDigits
  )
    return false;
  let at = point + 2;
  while (isDigit(text.charCodeAt(at))) at++;
  return at >= end;
}

// Returns whether a number with a fraction or exponent is an integer as a double, possibly by rounding.
function losesPrecision(number: string, canonical: boolean): boolean {
  const isShort = number.length <= maxExactDigits + 1 && !/[eE]/.test(number);
  if (isShort && !canonical) return false;
  // Integer fields accept a double only if it is a safe integer. For any other double, the exact reader reads the text.
  return Number.isSafeInteger(Number(number));
}

function startOfNumber(text: string, from: number): number {
  let start = from;
  while (isOfNumber(text.charCodeAt(start - 1))) start--;
  return start;
}

function endOfNumber(text: string, from: number): number {
  let end = from;
  while (isOfNumber(text.charCodeAt(end))) end++;
  return end;
}

// Returns whether a character is a digit, a sign, a decimal point or an exponent's letter.
function isOfNumber(unit: number): boolean {
  return isDigit(unit) || unit === 0x2b || unit === 0x2d || unit === 0x2e || unit === 0x45 || unit === 0x65;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}
