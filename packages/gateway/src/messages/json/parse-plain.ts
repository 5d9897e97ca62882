import type { JsonValue } from "@bufbuild/protobuf";
import { jsonDepthMax } from "./json-scanner.ts";

/** A JSON text as `JSON.parse` has it. */
export interface PlainText {
  readonly value: JsonValue;
  /** How many strings there are in the text, names included. Of two equal names, the value has one. */
  readonly strings: number;
  /** Whether a string may have a lone surrogate. */
  readonly mayBeLone: boolean;
}

/** What is known of a text while its values are read. */
export interface ReadState {
  /** How many strings were read so far, names included. */
  strings: number;
  /** Whether a string may have a lone surrogate. */
  readonly mayBeLone: boolean;
}

/**
 * Parses a JSON text by `JSON.parse`, if whatever is lost by that can be seen by counting strings.
 *
 * @param canonical - whether integers must be in canonical form
 * @returns `undefined` when the text is not JSON, or when there is something in it that the value does not show or a
 * message cannot have: a name with an escape, a number that is rounded to an integer, more than 100 levels
 */
export function parsePlain(text: string, canonical: boolean): PlainText | undefined {
  const survey = surveyText(text, canonical);
  if (survey === undefined) return undefined;
  try {
    const value: JsonValue = JSON.parse(text);
    return { value, strings: survey.strings, mayBeLone: survey.hasUnicodeEscapes };
  } catch {
    return undefined;
  }
}

/** Counts the strings in a value, names included; NaN when one has a lone surrogate, or a number is infinite. */
export function countStrings(value: JsonValue, mayBeLone: boolean): number {
  if (typeof value === "string") return mayBeLone && !value.isWellFormed() ? Number.NaN : 1;
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countStrings(item, mayBeLone);
    return count;
  }
  for (const name in value) count += 1 + countStrings(value[name] ?? null, mayBeLone);
  return count;
}

/** What one look over a JSON text tells, before `JSON.parse` reads it. */
interface TextSurvey {
  /** How many strings there are, names included. */
  readonly strings: number;
  /** Whether values have escapes such as `\u0041`, the only way to write a lone surrogate. */
  readonly hasUnicodeEscapes: boolean;
}

/**
 * Looks over a JSON text for what `JSON.parse` does not tell: it counts the strings, because of two equal names only
 * one survives, and looks for numbers whose double is an integer where the number may be none.
 *
 * It hops over strings, and looks at each character between them. What it says of a text that is not JSON is worthless.
 *
 * @param canonical - whether integers must be in canonical form
 * @returns `undefined` when there is such a number, or a name with an escape, which `JSON.parse` may take for another
 * name (nodejs/node#63785: V8 13 and 14 do), or the text is nested deeper than 100 levels
 */
function surveyText(text: string, canonical: boolean): TextSurvey | undefined {
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
      // Invariant: no backslash before this string is left, because JSON has them only in strings.
      while (backslash >= 0 && backslash < at) {
        isEscaped = true;
        hasUnicodeEscapes ||= text.charCodeAt(backslash + 1) === 0x75;
        at = backslash + 1 === at ? text.indexOf('"', at + 1) : at;
        backslash = text.indexOf("\\", backslash + 2);
      }
      if (at < 0 || (isEscaped && isName(text, at))) return undefined;
    } else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > jsonDepthMax) return undefined;
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === 0x2e || ((unit === 0x65 || unit === 0x45) && isDigit(text.charCodeAt(at - 1)))) {
      const [start, end] = [startOfNumber(text, at), endOfNumber(text, at)];
      if (!isFarFromIntegers(text, start, at, end) && mayMislead(text.slice(start, end), canonical)) return undefined;
      at = end - 1;
    }
  }
  return { strings, hasUnicodeEscapes };
}

// Returns whether the string that ends there is a name: a colon follows, perhaps after white space.
function isName(text: string, end: number): boolean {
  let at = end + 1;
  while (isSpace(text.charCodeAt(at))) at++;
  return text.charCodeAt(at) === 0x3a;
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/** The most integer digits with which a double still holds tenths. */
const tenthsKeptMax = 14;

// Returns whether a number is, by its first digit behind the point, a tenth or more away from each integer, and so is its
// double. Most fractions are, and to look at the others takes as long as to parse them.
function isFarFromIntegers(text: string, start: number, point: number, end: number): boolean {
  const tenth = text.charCodeAt(point + 1);
  if (text.charCodeAt(point) !== 0x2e || tenth < 0x31 || tenth > 0x38 || point - start > tenthsKeptMax) return false;
  let at = point + 2;
  while (isDigit(text.charCodeAt(at))) at++;
  return at >= end;
}

/** The digits that a double keeps, whatever they are. With a sign and a point, a longer number may be rounded. */
const exactDigitsMax = 15;

// Returns whether a number with a fraction or an exponent has an integer for a double, and is not surely that integer.
function mayMislead(number: string, canonical: boolean): boolean {
  const isShort = number.length <= exactDigitsMax + 1 && !/[eE]/.test(number);
  if (isShort && !canonical) return false;
  // What is no safe integer, no field of integers takes without looking at the text.
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

// A digit, a sign, a point or the letter of an exponent.
function isOfNumber(unit: number): boolean {
  return isDigit(unit) || unit === 0x2b || unit === 0x2d || unit === 0x2e || unit === 0x45 || unit === 0x65;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}
