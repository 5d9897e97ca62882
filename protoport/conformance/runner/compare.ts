import { isRecord, type Json } from "./case.ts";

/** Maximum number of differences that are reported for one message. */
const differencesLimit = 8;

/** Maximum number of characters that a difference quotes from a value. */
const shownLimit = 200;

/**
 * Returns the differences between expected and actual JSON. Object members have no order, and `float` fields are
 * compared as 32-bit numbers. A response may also contain fields with default values, or use proto field names, because
 * ProtoJSON allows both as serializer options.
 */
export function differences(want: Json, got: unknown, { response }: { readonly response: boolean }): readonly string[] {
  return [...compare("", want, got, response)].slice(0, differencesLimit);
}

function* compare(path: string, want: unknown, got: unknown, response: boolean): Generator<string> {
  if (Array.isArray(want)) {
    yield* compareLists(path, want, got, response);
  } else if (isRecord(want)) {
    yield* compareObjects(path, want, got, response);
  } else if (want !== got && !isSameFloat(path, want, got)) {
    yield describeDifference(path, want, got);
  }
}

function* compareLists(path: string, want: readonly unknown[], got: unknown, response: boolean): Generator<string> {
  if (!Array.isArray(got)) return yield describeDifference(path, want, got);
  if (got.length !== want.length) return yield describeDifference(path, want, got);
  for (const [at, each] of want.entries()) yield* compare(`${path}[${at}]`, each, got[at], response);
}

function* compareObjects(
  path: string,
  want: Readonly<Record<string, unknown>>,
  got: unknown,
  response: boolean,
): Generator<string> {
  if (!isRecord(got)) return yield describeDifference(path, want, got);
  const comparable = response ? inLowerCamelCase(got, want) : got;
  for (const [key, value] of Object.entries(want)) {
    const place = path === "" ? key : `${path}.${key}`;
    if (Object.hasOwn(comparable, key)) yield* compare(place, value, comparable[key], response);
    else yield describeDifference(place, value, undefined);
  }
  for (const [key, value] of Object.entries(comparable)) {
    if (Object.hasOwn(want, key) || (response && isDefault(value))) continue;
    yield describeDifference(path === "" ? key : `${path}.${key}`, undefined, value);
  }
}

function isSameFloat(path: string, want: unknown, got: unknown): boolean {
  if (typeof want !== "number" || typeof got !== "number" || !/float/i.test(path)) return false;
  return Math.fround(want) === Math.fround(got);
}

function inLowerCamelCase(
  got: Readonly<Record<string, unknown>>,
  want: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(got).map(([key, value]): [string, unknown] => {
    const camel = key.replaceAll(/_([a-z0-9])/g, (_, next: string) => next.toUpperCase());
    return [Object.hasOwn(want, key) ? key : camel, value];
  });
  return Object.fromEntries(entries);
}

function isDefault(value: unknown): boolean {
  if (typeof value === "string") return value === "" || value === "0" || value.endsWith("_UNSPECIFIED");
  if (Array.isArray(value)) return value.length === 0;
  return value === 0 || value === false || value === null || (isRecord(value) && Object.values(value).every(isDefault));
}

function describeDifference(path: string, want: unknown, got: unknown): string {
  return `${path === "" ? "the message" : path}: expected ${show(want)}, got ${show(got)}`;
}

/** Returns a value as text for a report line. */
export function show(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > shownLimit ? `${text.slice(0, shownLimit)}…` : text;
}
