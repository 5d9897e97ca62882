import type { JsonValue } from "@bufbuild/protobuf";
import { surveyText } from "./survey-text.ts";

/**
 * Parses a JSON text by `JSON.parse`, if nothing of it is lost by that.
 *
 * @param canonical - whether integers must be in canonical form
 * @returns `undefined` when the text is not JSON, or when there is something in it that the value does not show or a
 * message cannot have: a name twice in an object, a name with an escape, a number that is rounded to an integer or is too large, a lone
 * surrogate, more than 100 levels
 */
export function parsePlain(text: string, canonical: boolean): JsonValue | undefined {
  const survey = surveyText(text, canonical);
  if (survey === undefined) return undefined;
  const { strings, hasUnicodeEscapes } = survey;
  const value = parseText(text);
  return value !== undefined && countStrings(value, hasUnicodeEscapes) === strings ? value : undefined;
}

function parseText(text: string): JsonValue | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

// Counts the strings in a value; NaN when one has a lone surrogate, or a number is infinite.
function countStrings(value: JsonValue, mayBeLone: boolean): number {
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
