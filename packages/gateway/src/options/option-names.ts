import { withCode } from "../errors/identifiers/index.ts";
import { nearestName } from "./nearest-name.ts";

/** Marks a required option. */
export const required = "required";

/**
 * The names of the options in an object of this type: adding an option to the type but not here does not compile. The
 * value is {@link required} for a required option, a nested object of names for an option that has options itself, and
 * `true` or the default for all others.
 */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: undefined extends Options[Name] ? unknown : typeof required;
};

/**
 * Rejects unknown options, which no compiler checks in JavaScript, and missing required options.
 *
 * @param owner - the function that has these options, such as `createGateway`, for the message
 * @throws TypeError with the code ERR_OPTIONS that has a line for each unknown name (`unknown option "readMaxByte", did
 * you mean "readMaxBytes"?`, or all known names if none is similar) and for each missing option; or if `options` is not
 * an object
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
 * Refuses an argument that is not an object, such as a missing one.
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
  const actualValues = new Map<string, unknown>(Object.entries(options));
  const unknown = [...actualValues].flatMap(([name, value]) => {
    if (!known.has(name)) return [problemOf(name, [...known.keys()], owner, prefix)];
    const nested = known.get(name);
    return isObject(nested) && isObject(value) ? problemsOf(value, nested, owner, `${prefix}${name}.`) : [];
  });
  const missing = [...known].filter(([name, kind]) => kind === required && actualValues.get(name) === undefined);
  return [...unknown, ...missing.map(([name]) => `${owner} requires the option "${prefix}${name}"`)];
}

function problemOf(name: string, known: readonly string[], owner: string, prefix: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `unknown option "${prefix}${name}", did you mean "${prefix}${nearest}"?`;
  return `unknown option "${prefix}${name}"; ${owner} accepts ${known.map((each) => `"${prefix}${each}"`).join(", ")}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
