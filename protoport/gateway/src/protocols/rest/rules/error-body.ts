import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { withCode } from "../../../http/index.ts";
import type { ErrorParts } from "./error-forms.ts";

/** The values of the placeholders, by name. */
const valueOf = {
  code: ({ codeName }: ErrorParts): JsonValue => codeName,
  number: ({ code }: ErrorParts): JsonValue => code,
  message: ({ message }: ErrorParts): JsonValue => message,
  details: ({ details }: ErrorParts): JsonValue => details,
  httpStatus: ({ httpStatus }: ErrorParts): JsonValue => httpStatus,
};

/** The name of a placeholder in an {@link ErrorBody}. */
export type ErrorPlaceholder = keyof typeof valueOf;

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
  const name = typeof value === "string" ? /^\{(.*)\}$/s.exec(value)?.[1] : undefined;
  return name !== undefined && isPlaceholder(name) ? name : undefined;
}

function isPlaceholder(name: string): name is ErrorPlaceholder {
  return Object.hasOwn(valueOf, name);
}

/** Returns a template with the values of an error. */
export function fillErrorBody(template: ErrorBody, parts: ErrorParts): JsonObject {
  const fill = (value: JsonValue): JsonValue => {
    const name = placeholderOf(value);
    if (name !== undefined) return valueOf[name](parts);
    if (Array.isArray(value)) return value.map(fill);
    return typeof value === "object" && value !== null ? fillMembers(value) : value;
  };
  const fillMembers = (members: ErrorBody): JsonObject =>
    Object.fromEntries(Object.entries(members).map(([name, value]) => [name, fill(value)]));
  return fillMembers(template);
}

/** Finds the values of a template that are too deep, not JSON or have unknown placeholders, each with its path. */
export function* errorBodyProblems(
  value: unknown,
  path: readonly string[] = [],
): Generator<{ readonly path: readonly string[]; readonly problem: string }> {
  const problem = isJsonObject(value) ? undefined : path.length === 0 ? "must be an object" : problemOfItem(value);
  if (problem !== undefined) yield { path, problem };
  else if (path.length > maxDepth) yield { path, problem: `must be in at most ${maxDepth} objects and arrays` };
  else if (typeof value === "object" && value !== null)
    for (const [name, member] of Object.entries(value)) {
      if (/[{}]/.test(name)) yield { path, problem: `must have names without braces, got ${JSON.stringify(name)}` };
      yield* errorBodyProblems(member, [...path, name]);
    }
}

function isJsonObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function problemOfItem(value: unknown): string | undefined {
  if (typeof value === "string") {
    if (!/[{}]/.test(value) || placeholderOf(value) !== undefined) return undefined;
    const known = Object.keys(valueOf).map((name) => `{${name}}`);
    return `must be ${known.join(", ")} or text without braces, got ${JSON.stringify(value)}`;
  }
  const isJson = value === null || typeof value === "boolean" || Array.isArray(value) || Number.isFinite(value);
  return isJson ? undefined : "must be JSON";
}

/** @throws TypeError for a template with a problem */
export function requireErrorBody(template: unknown): void {
  for (const { path, problem } of errorBodyProblems(template))
    throw withCode(new TypeError(`${["rest.errorBody", ...path].join(".")} ${problem}`), "ERR_OPTIONS");
}
