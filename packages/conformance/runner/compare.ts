import { isRecord, type Json } from "./case.ts";

/** The most differences that are named of one message. */
const differencesLimit = 8;

/** The most of a value that a difference shows, in characters. */
const shownLimit = 200;

/**
 * Names the differences between the JSON that is wanted and the JSON that came: objects have no order, and `float`
 * fields are equal as the 32 bits that they are. As ProtoJSON lets serializers do so by options, an `answer` may also
 * have fields with default values, and the names of the definition instead of those in lowerCamelCase.
 */
export function differences(want: Json, got: unknown, { answer }: { readonly answer: boolean }): readonly string[] {
  return [...compare("", want, got, answer)].slice(0, differencesLimit);
}

function* compare(path: string, want: unknown, got: unknown, answer: boolean): Generator<string> {
  if (Array.isArray(want)) {
    yield* compareLists(path, want, got, answer);
  } else if (isRecord(want)) {
    yield* compareObjects(path, want, got, answer);
  } else if (want !== got && !isSameFloat(path, want, got)) {
    yield differs(path, want, got);
  }
}

function* compareLists(path: string, want: readonly unknown[], got: unknown, answer: boolean): Generator<string> {
  if (!Array.isArray(got)) return yield differs(path, want, got);
  if (got.length !== want.length) return yield differs(path, want, got);
  for (const [at, each] of want.entries()) yield* compare(`${path}[${at}]`, each, got[at], answer);
}

function* compareObjects(
  path: string,
  want: Readonly<Record<string, unknown>>,
  got: unknown,
  answer: boolean,
): Generator<string> {
  if (!isRecord(got)) return yield differs(path, want, got);
  const named = answer ? inLowerCamelCase(got, want) : got;
  for (const [key, value] of Object.entries(want)) {
    const place = path === "" ? key : `${path}.${key}`;
    if (Object.hasOwn(named, key)) yield* compare(place, value, named[key], answer);
    else yield differs(place, value, undefined);
  }
  for (const [key, value] of Object.entries(named)) {
    if (Object.hasOwn(want, key) || (answer && isDefault(value))) continue;
    yield differs(path === "" ? key : `${path}.${key}`, undefined, value);
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

function differs(path: string, want: unknown, got: unknown): string {
  return `${path === "" ? "the message" : path}: expected ${show(want)}, got ${show(got)}`;
}

/** A value in a line of a report. */
export function show(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > shownLimit ? `${text.slice(0, shownLimit)}…` : text;
}
