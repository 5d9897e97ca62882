import { parsed, unparsed, type Parsed } from "./parsed.ts";

/** A JSON object of which nothing is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object of JSON: no array, no `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses the text of a JSON object; `what` names it in the problem. */
export function parseJsonObject(text: string, what: string): Parsed<JsonObject> {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? parsed(value) : unparsed(`${what} is not a JSON object`);
  } catch {
    return unparsed(`${what} is not JSON`);
  }
}
