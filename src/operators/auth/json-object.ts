import { notParsed, parsed, type ParseResult } from "../inputs/index.ts";

/** A JSON object whose members have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns whether a value is a JSON object, and neither an array nor `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses a JSON object; `what` names it in the problem. */
export function parseJsonObject(text: string, what: string): ParseResult<JsonObject> {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? parsed(value) : notParsed(`${what} is not a JSON object`);
  } catch {
    return notParsed(`${what} is not JSON`);
  }
}
