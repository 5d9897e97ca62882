import { withCode } from "../errors/index.ts";
import { nearestName } from "./nearest-name.ts";

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

/** Marks an option that is a string, or an object with the options in `names`. */
export function stringOr(names: object): OptionCheck {
  return new OptionCheck((value, owner, path) =>
    typeof value === "string" ? [] : problemsOfObject(value, names, owner, path),
  );
}

/** Marks an option that is an integer between `min` and `max`. With the `max` Infinity, Infinity is accepted too. */
export function integerBetween(min: number, max: number): OptionCheck {
  return new OptionCheck((value, owner, path) => {
    const isInteger = Number.isInteger(value) || value === Number.POSITIVE_INFINITY;
    if (isInteger && Number(value) >= min && Number(value) <= max) return [];
    const got = typeof value === "number" ? String(value) : typeOf(value);
    return [`option "${path}" of ${owner} must be an integer between ${min} and ${max}, got ${got}`];
  });
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
  const problems = problemsOf(options, names, owner, "");
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
  if (isObject(value)) return;
  throw withCode(new TypeError(`${owner} requires an object of ${of}, got ${typeOf(value)}`), "ERR_OPTIONS");
}

function problemsOf(options: object, names: object, owner: string, prefix: string): readonly string[] {
  const known = new Map<string, unknown>(Object.entries(names));
  const actualValues = new Map<string, unknown>(Object.entries(options));
  const found = [...actualValues].flatMap(([name, value]) => {
    if (!known.has(name)) return [problemOf(name, [...known.keys()], owner, prefix)];
    const kind = known.get(name);
    if (value === undefined) return [];
    if (kind instanceof OptionCheck) return kind.check(value, owner, `${prefix}${name}`);
    return isObject(kind) ? problemsOfObject(value, kind, owner, `${prefix}${name}`) : [];
  });
  const missing = [...known].filter(([name, kind]) => isRequired(kind) && actualValues.get(name) === undefined);
  return [...found, ...missing.map(([name]) => `${owner} requires the option "${prefix}${name}"`)];
}

function isRequired(kind: unknown): boolean {
  return kind === required || (kind instanceof OptionCheck && kind.kind === required);
}

function problemsOfObject(value: unknown, names: object, owner: string, path: string): readonly string[] {
  return isObject(value) ? problemsOf(value, names, owner, `${path}.`) : [wrongType("an object", value, owner, path)];
}

function wrongType(expected: string, value: unknown, owner: string, path: string): string {
  return `option "${path}" of ${owner} must be ${expected}, got ${typeOf(value)}`;
}

function problemOf(name: string, known: readonly string[], owner: string, prefix: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `unknown option "${prefix}${name}", did you mean "${prefix}${nearest}"?`;
  return `unknown option "${prefix}${name}"; ${owner} accepts ${known.map((each) => `"${prefix}${each}"`).join(", ")}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (value === null) return "null";
  return typeof value === "object" ? "an object" : typeof value;
}
