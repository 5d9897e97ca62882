import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { withCode } from "../../../http/index.ts";
import type { ErrorParts } from "./error-forms.ts";

/** The name of a placeholder in an {@link ErrorBody}. */
export type ErrorPlaceholder = keyof ErrorParts;

const names: readonly ErrorPlaceholder[] = ["code", "number", "message", "details", "httpStatus"];
const placeholders: ReadonlyMap<unknown, ErrorPlaceholder> = new Map(names.map((name) => [`{${name}}`, name]));

/**
 * The template of an error's JSON. Strings with braces are placeholders for values: `"{code}"` for the code's name,
 * `"{number}"` for the code's number, `"{message}"`, `"{details}"` for an array, and `"{httpStatus}"` for a number. Other
 * values are sent as they are.
 */
export type ErrorBody = Readonly<Record<string, JsonValue>>;

/** Limit of the objects and arrays around a template's value. Error formats of other gateways have at most 4. */
const maxDepth = 16;

/** Returns the name of the placeholder that a template's value is, or `undefined` for other values. */
export function placeholderOf(value: unknown): ErrorPlaceholder | undefined {
  return placeholders.get(value);
}

/** Returns a template with the values of an error. */
export function fillErrorBody(template: ErrorBody, parts: ErrorParts): JsonObject {
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fill(value, parts)]));
}

function fill(value: JsonValue, parts: ErrorParts): JsonValue {
  const name = placeholderOf(value);
  if (name !== undefined) return parts[name];
  if (Array.isArray(value)) return value.map((item) => fill(item, parts));
  return typeof value === "object" && value !== null ? fillErrorBody(value, parts) : value;
}

/** Finds the values of a template that are too deep, not JSON or have unknown placeholders, each with its path. */
export function* errorBodyProblems(
  value: unknown,
  path: readonly string[] = [],
): Generator<{ readonly path: readonly string[]; readonly problem: string }> {
  const problem = problemOf(value, path.length);
  if (problem !== undefined) return yield { path, problem };
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (/[{}]/.test(name)) yield { path, problem: `must have names without braces, got ${JSON.stringify(name)}` };
    yield* errorBodyProblems(member, [...path, name]);
  }
}

function problemOf(value: unknown, depth: number): string | undefined {
  const isObject = Object(value) === value && [Object.prototype, null].includes(Object.getPrototypeOf(value));
  if (depth === 0 && !isObject) return "must be an object";
  if (typeof value === "string" && /[{}]/.test(value) && placeholderOf(value) === undefined)
    return `must be ${[...placeholders.keys()].join(", ")} or text without braces, got ${JSON.stringify(value)}`;
  const isItem = value === null || ["boolean", "string"].includes(typeof value) || Number.isFinite(value);
  if (!isObject && !isItem && !Array.isArray(value)) return "must be JSON";
  return depth > maxDepth ? `must be in at most ${maxDepth} objects and arrays` : undefined;
}

/** @throws TypeError for a template with a problem */
export function requireErrorBody(template: unknown): void {
  for (const { path, problem } of errorBodyProblems(template))
    throw withCode(new TypeError(`${["rest.errorBody", ...path].join(".")} ${problem}`), "ERR_OPTIONS");
}
