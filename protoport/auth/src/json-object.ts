import { withProblems, parsed, type ParseResult } from "./inputs/index.ts";

/** A JSON object whose members have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns whether a value is a JSON object. Arrays and `null` are not. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns whether a member name in the object contains a backslash. In V8 13 and 14, `JSON.parse` may return a name
 * without decoding its escapes (nodejs/node#63785), so an escaped `cnf` would be missed.
 */
export function hasNameWithBackslash(object: JsonObject): boolean {
  return Object.keys(object).some((name) => name.includes("\\"));
}

/** Parses a JSON object. Rejects names with a backslash. Problem messages start with `what`. */
export function parseJsonObject(text: string, what: string): ParseResult<JsonObject> {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return withProblems(`${what} is not a JSON object`);
    return hasNameWithBackslash(value) ? withProblems(`${what} has a member name with a backslash`) : parsed(value);
  } catch {
    return withProblems(`${what} is not valid JSON`);
  }
}
