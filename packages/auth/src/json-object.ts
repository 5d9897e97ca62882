import { notParsed, parsed, type ParseResult } from "./inputs/index.ts";

/** A JSON object whose members have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns whether a value is a JSON object, and neither an array nor `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns whether a name in the object itself may have been another one in its text: `JSON.parse` of V8 13 and 14 may
 * take a name with an escape for the beginning of how it is written, which has a backslash (nodejs/node#63785). So a
 * `cnf` that is written with an escape could be missed.
 */
export function mayBeMisread(object: JsonObject): boolean {
  return Object.keys(object).some((name) => name.includes("\\"));
}

/** Parses a JSON object without a backslash in its names; `what` names it in the problem. */
export function parseJsonObject(text: string, what: string): ParseResult<JsonObject> {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return notParsed(`${what} is not a JSON object`);
    return mayBeMisread(value) ? notParsed(`${what} has a member name with a backslash`) : parsed(value);
  } catch {
    return notParsed(`${what} is not valid JSON`);
  }
}
