import { withCode } from "./problems.ts";

/** Marks a required option. */
export const required = "required";

/** Returns the problems with an option value. @param path - the option path, such as `limits` or `jwt[0]` */
type CheckValue = (value: unknown, owner: string, path: string) => readonly string[];

class OptionCheck {
  readonly check: CheckValue;
  readonly kind: typeof required | undefined;

  constructor(check: CheckValue, kind?: typeof required) {
    this.check = check;
    this.kind = kind;
  }
}

/** Marks an option that is an array. With `names`, the elements are objects with the named options. */
export function arrayOf(names?: object, kind?: typeof required): OptionCheck {
  const problemsOfArray: CheckValue = (value, owner, path) => {
    if (!Array.isArray(value)) return [wrongType("an array", value, owner, path)];
    if (names === undefined) return [];
    return value.flatMap((item: unknown, at) => problemsOfObject(item, names, owner, `${path}[${at}]`));
  };
  return new OptionCheck(problemsOfArray, kind);
}

/** Marks an option that is an array of strings. */
export function arrayOfStrings(kind?: typeof required): OptionCheck {
  const problemsOfArray: CheckValue = (value, owner, path) => {
    if (!Array.isArray(value)) return [wrongType("an array", value, owner, path)];
    return value.flatMap((item: unknown, at) =>
      typeof item === "string" ? [] : [wrongType("a string", item, owner, `${path}[${at}]`)],
    );
  };
  return new OptionCheck(problemsOfArray, kind);
}

/** Marks an option that is an object whose members are strings. */
export function stringsByName(): OptionCheck {
  return new OptionCheck((value, owner, path) =>
    isOptionsObject(value)
      ? Object.entries(value).flatMap(([name, each]) =>
          typeof each === "string" ? [] : [wrongType("a string", each, owner, `${path}.${name}`)],
        )
      : [wrongType("an object", value, owner, path)],
  );
}

/** Marks an option that is a string, or an object with the options in `names`. */
export function stringOr(names: object): OptionCheck {
  return new OptionCheck((value, owner, path) =>
    typeof value === "string" ? [] : problemsOfObject(value, names, owner, path),
  );
}

/** Marks an option that is an integer between `min` and `max`. With the `max` Infinity, Infinity is accepted too. */
export function integerBetween(min: number, max: number, kind?: typeof required): OptionCheck {
  return new OptionCheck((value, owner, path) => {
    const isInteger = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
    if (isInteger && Number(value) >= min && Number(value) <= max) return [];
    const got = typeof value === "number" ? String(value) : typeOf(value);
    return [`option "${path}" of ${owner} must be an integer between ${min} and ${max}, got ${got}`];
  }, kind);
}

/**
 * The option names of an options type. TypeScript reports an option that is in the type but not in the names. The value
 * is {@link required} for a required option, and a nested object with names for an option that has options itself. For
 * an array, the value is the result of {@link arrayOf} or {@link arrayOfStrings}, and for an integer, that of {@link
 * integerBetween}. For all other options, the value is `true` or the default.
 */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: undefined extends Options[Name] ? unknown : typeof required | OptionCheck;
};

/**
 * Rejects unknown options and missing required options. JavaScript programs have no compiler that checks options.
 *
 * @param owner - the function with these options, such as `createGateway`, for the error message
 * @throws TypeError with the code ERR_OPTIONS and a line for each problem: unknown names (with the most similar known
 * name, or all known names), missing options, and options with a wrong type
 */
export function refuseUnknownOptions<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
  owner: string,
): void {
  requireObject(options, owner, "options");
  const problems = optionProblemsOf(options, names, owner, "");
  if (problems.length > 0) throw withCode(new TypeError(problems.join("\n")), "ERR_OPTIONS");
}

/**
 * Refuses options that exist, but that a function would ignore.
 *
 * @param reasons - for each ignored option, what the application should do instead
 * @param user - the function that ignores the options, such as `listen()`, for the error message
 * @throws TypeError with the code ERR_OPTIONS and a line for each ignored option
 */
export function refuseIgnoredOptions(options: object, reasons: Readonly<Record<string, string>>, user: string): void {
  const given = new Map<string, unknown>(Object.entries(options));
  const problems = Object.entries(reasons)
    .filter(([name]) => given.get(name) !== undefined)
    .map(([name, reason]) => `${user} would ignore the option "${name}": ${reason}`);
  if (problems.length > 0) throw withCode(new TypeError(problems.join("\n")), "ERR_OPTIONS");
}

/** Refuses a value of `option` that is not a key of a table. @throws TypeError with the code ERR_OPTIONS */
export function requireName(table: object, name: unknown, option: string): void {
  if (typeof name === "string" && Object.hasOwn(table, name)) return;
  const known = Object.keys(table).join(", ");
  throw withCode(new TypeError(`${option} must be one of ${known}, got ${JSON.stringify(name)}`), "ERR_OPTIONS");
}

/** Refuses an argument that is not an object. @throws TypeError with ERR_OPTIONS: "… requires an object of ${of}" */
export function requireObject(value: unknown, owner: string, of: string): void {
  if (isOptionsObject(value)) return;
  throw withCode(new TypeError(`${owner} requires an object of ${of}, got ${typeOf(value)}`), "ERR_OPTIONS");
}

function optionProblemsOf(options: object, names: object, owner: string, prefix: string): readonly string[] {
  const known = new Map<string, unknown>(Object.entries(names));
  const actualValues = new Map<string, unknown>(Object.entries(options));
  const found = [...actualValues].flatMap(([name, value]) => {
    if (!known.has(name)) return [unknownNameProblem(name, [...known.keys()], owner, prefix)];
    const kind = known.get(name);
    if (value === undefined) return [];
    if (kind instanceof OptionCheck) return kind.check(value, owner, `${prefix}${name}`);
    return isOptionsObject(kind) ? problemsOfObject(value, kind, owner, `${prefix}${name}`) : [];
  });
  const missing = [...known].filter(([name, kind]) => isRequiredKind(kind) && actualValues.get(name) === undefined);
  return [...found, ...missing.map(([name]) => `${owner} requires the option "${prefix}${name}"`)];
}

function isRequiredKind(kind: unknown): boolean {
  return kind === required || (kind instanceof OptionCheck && kind.kind === required);
}

function problemsOfObject(value: unknown, names: object, owner: string, path: string): readonly string[] {
  return isOptionsObject(value)
    ? optionProblemsOf(value, names, owner, `${path}.`)
    : [wrongType("an object", value, owner, path)];
}

function wrongType(expected: string, value: unknown, owner: string, path: string): string {
  return `option "${path}" of ${owner} must be ${expected}, got ${typeOf(value)}`;
}

function unknownNameProblem(name: string, known: readonly string[], owner: string, prefix: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `unknown option "${prefix}${name}", did you mean "${prefix}${nearest}"?`;
  return `unknown option "${prefix}${name}"; ${owner} accepts ${known.map((each) => `"${prefix}${each}"`).join(", ")}`;
}

function isOptionsObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (value === null) return "null";
  return typeof value === "object" ? "an object" : typeof value;
}

/**
 * Returns a callback's result. Refuses a promise, because its value would be ignored, and its rejection would exit the
 * process. TypeScript allows an async function if the callback type returns nothing or any object.
 *
 * @param requirement - the start of the error message, such as `toError must be synchronous`
 * @throws TypeError with the code ERR_OPTIONS for a promise. The promise's rejection is ignored
 */
export function refusePromise<Result>(returned: Result, requirement: string): Result {
  if (typeof returned === "object" && returned !== null && "then" in returned) {
    // `Promise.resolve` also accepts a thenable from another library.
    Promise.resolve(returned).catch(() => undefined);
    throw withCode(new TypeError(`${requirement}, got a promise`), "ERR_OPTIONS");
  }
  return returned;
}

/** Values by name or by prefix. A pattern that ends with `*`, such as `a.b.*`, is a prefix. */
export class NamePatterns<Value = true> {
  readonly #names = new Map<string, Value>();
  /** The prefixes, longest first. */
  readonly #prefixes: readonly (readonly [prefix: string, value: Value])[];

  constructor(patterns: Iterable<readonly [pattern: string, value: Value]>) {
    const prefixes: (readonly [prefix: string, value: Value])[] = [];
    for (const [pattern, value] of patterns) {
      if (pattern.endsWith("*")) prefixes.push([pattern.slice(0, -1), value]);
      else this.#names.set(pattern, value);
    }
    this.#prefixes = prefixes.toSorted(([a], [b]) => b.length - a.length);
  }

  /** Returns the value of the name itself, or else of its longest prefix. */
  get(name: string): Value | undefined {
    return this.#names.get(name) ?? this.#prefixes.find(([prefix]) => name.startsWith(prefix))?.[1];
  }
}

/** Creates a function that returns whether a name matches one of the patterns. */
export function matcherOf(patterns: readonly string[]): (name: string) => boolean {
  const known = new NamePatterns(patterns.map((pattern) => [pattern, true] as const));
  return (name) => known.get(name) === true;
}

/**
 * Returns the name most similar to a misspelled name, ignoring case, or else the only name that it abbreviates.
 *
 * @param lettersPerEdit - how many letters the longer name must have for each edit
 */
export function nearestName(misspelled: string, names: readonly string[], lettersPerEdit = 3): string | undefined {
  return similarName(misspelled, names, lettersPerEdit) ?? abbreviatedName(misspelled, names);
}

function similarName(misspelled: string, names: readonly string[], lettersPerEdit: number): string | undefined {
  const ranked = names.map((name) => ({ name, edits: editsBetween(misspelled, name) }));
  const [nearest] = ranked.toSorted((one, other) => one.edits - other.edits);
  if (nearest === undefined) return undefined;
  const letters = Math.max(misspelled.length, nearest.name.length);
  if (nearest.edits > letters / lettersPerEdit) return undefined;
  return nearest.name;
}

/** Minimum number of letters in an abbreviation. Shorter strings may be the start of a name by chance. */
const minAbbreviationLength = 3;

function abbreviatedName(given: string, names: readonly string[]): string | undefined {
  if (given.length < minAbbreviationLength) return undefined;
  const [name, ...others] = names.filter((each) => each.toLowerCase().startsWith(given.toLowerCase()));
  return others.length === 0 ? name : undefined;
}

interface MisspelledName {
  readonly name: string;
  readonly suggestion: string;
}

/**
 * Finds an unknown name that is similar to a missing known name, and so most likely a misspelling. Other unknown names
 * are allowed.
 *
 * @param known - the known names, which are never misspellings
 * @param missing - the known names that the object lacks
 */
export function findMisspelled(
  names: Iterable<string>,
  known: readonly string[],
  missing: readonly string[],
  lettersPerEdit = 3,
): MisspelledName | undefined {
  for (const name of names) {
    const suggestion = known.includes(name) ? undefined : similarName(name, missing, lettersPerEdit);
    if (suggestion !== undefined) return { name, suggestion };
  }
  return undefined;
}

// Maximum number of letters that are compared. The CPU time grows with the square of this number.
// equivalent mutant: a limit of 63 or 65 letters changes no result.
const maxComparedLength = 64;

/** Returns the number of letters at the start of two names that are equal, ignoring case. */
function sharedLength(one: string, other: string): number {
  const letters = other.toLowerCase();
  const different = one
    .toLowerCase()
    .split("")
    .findIndex((letter, at) => letter !== letters[at]);
  return different < 0 ? one.length : different;
}

/**
 * Returns the number of edits between two names (optimal string alignment). An edit adds, removes or replaces a letter,
 * or swaps two neighbours. After the shared start, letters beyond {@link maxComparedLength} count as edits.
 */
function editsBetween(one: string, other: string): number {
  const shared = sharedLength(one, other);
  const [from, to] = [lettersOf(one.slice(shared)), lettersOf(other.slice(shared))];
  const rows = [[0, ...to.map((_, column) => column + 1)]];
  for (const line of from.keys()) rows.push(nextRow(rows, line, from, to));
  const uncompared = one.length + other.length - 2 * shared - from.length - to.length;
  return (rows.at(-1)?.at(-1) ?? 0) + uncompared;
}

function lettersOf(name: string): readonly string[] {
  return name.slice(0, maxComparedLength).toLowerCase().split("");
}

function nextRow(
  rows: readonly (readonly number[])[],
  line: number,
  from: readonly string[],
  to: readonly string[],
): number[] {
  const [beforeAbove = [], above = []] = [rows[line - 1], rows[line]];
  const row = [line + 1];
  for (const [column, letter] of to.entries()) {
    const replaced = (above[column] ?? 0) + (from[line] === letter ? 0 : 1);
    const isSwapped = from[line] === to[column - 1] && from[line - 1] === letter;
    const swapped = isSwapped ? (beforeAbove[column - 1] ?? 0) + 1 : replaced;
    row.push(Math.min(replaced, swapped, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
  }
  return row;
}
