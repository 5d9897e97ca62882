import { withCode } from "../errors/index.ts";
import { nearestName } from "./nearest-name.ts";

/** Marks an option that must be given. */
export const required = "required";

/**
 * The names of the options in an object of this type: an option that is added to the type and not here does not compile.
 * Each has {@link required} if it must be given, another such object if its value is an object of options too, and
 * anything else if not: `true`, or its default.
 */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: undefined extends Options[Name] ? unknown : typeof required;
};

/**
 * Refuses options that do not exist, so that a misspelled name is not ignored where no compiler has seen it, and the lack
 * of one that is required.
 *
 * @param owner - what has these options, such as `createGateway`, for the message
 * @throws TypeError with the code ERR_OPTIONS that has a line for each unknown name: `unknown option "readMaxByte", did
 * you mean "readMaxBytes"?`, or all names if none is near, and for each that is missing; or for what is not an object
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
 * Refuses an argument that is not an object, such as one that was left out.
 *
 * @param of - what the object contains, such as "options", for the message
 * @throws TypeError with the code ERR_OPTIONS
 */
export function requireObject(value: unknown, owner: string, of: string): void {
  if (isObject(value)) return;
  const type = Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
  throw withCode(new TypeError(`${owner} requires an object of ${of}, got ${type}`), "ERR_OPTIONS");
}

function problemsOf(options: object, names: object, owner: string, prefix: string): readonly string[] {
  const known = new Map<string, unknown>(Object.entries(names));
  const given = new Map<string, unknown>(Object.entries(options));
  const wrong = [...given].flatMap(([name, value]) => {
    if (!known.has(name)) return [problemOf(name, [...known.keys()], owner, prefix)];
    const inside = known.get(name);
    return isObject(inside) && isObject(value) ? problemsOf(value, inside, owner, `${prefix}${name}.`) : [];
  });
  const missing = [...known].filter(([name, kind]) => kind === required && given.get(name) === undefined);
  return [...wrong, ...missing.map(([name]) => `${owner} requires the option "${prefix}${name}"`)];
}

function problemOf(name: string, known: readonly string[], owner: string, prefix: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `unknown option "${prefix}${name}", did you mean "${prefix}${nearest}"?`;
  return `unknown option "${prefix}${name}"; ${owner} accepts ${known.map((each) => `"${prefix}${each}"`).join(", ")}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
