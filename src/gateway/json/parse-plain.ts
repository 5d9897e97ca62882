import type { JsonValue } from "@bufbuild/protobuf";
import { surveyText } from "./survey-text.ts";

/** A JSON text as `JSON.parse` has it. */
export interface PlainText {
  readonly value: JsonValue;
  /** How many strings there are in the text, names included. Of two equal names, the value has one. */
  readonly strings: number;
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
