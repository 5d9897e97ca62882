import { withCode } from "../errors/index.ts";
import { nearestName } from "./nearest-name.ts";

/**
 * The names of the options in an object of this type, each with `true`, or with the names inside of it if its value is
 * an object of options too. An option that is added to the type and not here does not compile.
 */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: true | OptionNames<NonNullable<Options[Name]>>;
};

/**
 * Refuses options that do not exist, so that a misspelled name is not ignored where no compiler has seen it.
 *
 * @param owner - what has these options, such as `createGateway`, for the message
 * @throws TypeError with the code ERR_OPTIONS that has a line for each unknown name: `unknown option "readMaxByte": did
 * you mean "readMaxBytes"?`, or all names if none is near
 */
export function refuseUnknownOptions<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
  owner: string,
): void {
  refuse(problemsOf(options, names, owner, ""));
}

/** Refuses options as {@link refuseUnknownOptions} does, where all names are in a list. */
export function refuseUnknownNames(options: object, names: readonly string[], owner: string): void {
  refuse(problemsOf(options, Object.fromEntries(names.map((name) => [name, true])), owner, ""));
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw withCode(new TypeError(problems.join("\n")), "ERR_OPTIONS");
}

function problemsOf(options: object, names: object, owner: string, prefix: string): readonly string[] {
  const known = new Map<string, unknown>(Object.entries(names));
  return Object.entries(options).flatMap(([name, value]: [string, unknown]) => {
    const inside = known.get(name);
    if (inside === undefined) return [problemOf(name, [...known.keys()], owner, prefix)];
    return isObject(inside) && isObject(value) ? problemsOf(value, inside, owner, `${prefix}${name}.`) : [];
  });
}

function problemOf(name: string, known: readonly string[], owner: string, prefix: string): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `unknown option "${prefix}${name}": did you mean "${prefix}${nearest}"?`;
  return `unknown option "${prefix}${name}": ${owner} has ${known.map((each) => `"${prefix}${each}"`).join(", ")}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
