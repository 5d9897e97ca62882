import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { SourceTree } from "../source-tree.ts";

/** A public API whose options objects refuse unknown names. */
interface OptionsApi {
  /** The sources that the API's parameters are read from. */
  readonly tree: SourceTree;
  /** Returns whether a package's entry, such as `gateway/fetch`, is covered. */
  readonly isCovered: (entry: string) => boolean;
  /** By type: passes an object with unknown names to the API. */
  readonly gives: Readonly<Record<string, (wrong: object) => unknown>>;
  /** By type: why its objects may have any names. */
  readonly others: Readonly<Record<string, string>>;
}

/** Tests that every options object of an API refuses unknown names, and suggests the right one. */
export function describeUnknownOptions({ tree, isCovered, gives, others }: OptionsApi): void {
  const code = tree.files.map((file) => tree.textOf(file).replaceAll(/\/\*\*.*?\*\//gs, "")).join("\n");
  const interfaces = new Map(
    [...code.matchAll(/^(?:export )?interface (\w+)(.*?)\n?\}\n/gms)].map(([, name = "", body = ""]) => [name, body]),
  );
  const interfacesIn = (text: string): string[] =>
    [...text.matchAll(/\b[A-Z]\w+/g)].map(([name]) => name).filter((name) => interfaces.has(name));
  /** Returns an exported function's declared parameters. */
  const parametersOf = (name: string): string => {
    const declaration = new RegExp(
      `^export (?:async )?function ${name}\\b(?:<[^(]*>)?\\((?:([^\\n]*)\\)|\\n(.*?)\\n\\)): `,
      "ms",
    ).exec(code);
    return declaration?.[1] ?? declaration?.[2] ?? "";
  };
  /** Returns the parameters that a type's methods have. */
  const methodParametersOf = (type: string): string[] =>
    [...(interfaces.get(type) ?? "").matchAll(/^ {2}\w+\??\((.*?)\): /gm)].map(([, parameters = ""]) => parameters);

  test("every parameter type in the public API has a test case or an exception", async () => {
    const found = new Set<string>();
    for (const [name, { exports }] of tree.manifests) {
      for (const [subpath, path] of Object.entries(exports)) {
        if (!isCovered(name + subpath.slice(1)) || !path.endsWith(".ts")) continue;
        const entry = join(dirname(tree.pathOf(name)), path);
        const values = Object.keys(await import(entry));
        const types = [...readFileSync(entry, "utf8").matchAll(/\btype (\w+)/g)].map(([, type = ""]) => type);
        const parameters = [...values.map(parametersOf), ...types.flatMap(methodParametersOf)];
        for (const type of parameters.flatMap(interfacesIn)) found.add(type);
      }
    }
    // Iterating over a set includes members that are added meanwhile.
    for (const type of found) for (const inside of interfacesIn(interfaces.get(type) ?? "")) found.add(inside);
    const types = [...found].toSorted();
    expect(types.filter((type) => !(type in gives) && !(type in others))).toEqual([]);
    expect([...Object.keys(gives), ...Object.keys(others)].filter((type) => !types.includes(type))).toEqual([]);
  });

  test.each(Object.entries(gives))("%s refuses an unknown name", async (_, give) => {
    await expect(async () => await give({ misspelledName: 1 })).rejects.toThrow(
      expect.objectContaining({
        code: "ERR_OPTIONS",
        message: expect.stringMatching(/^unknown option "(?:\w+(?:\[\d+\])?\.)*misspelledName"; .* accepts "/),
      }),
    );
  });

  test.each(Object.entries(gives))("%s suggests the right name if two letters are swapped", async (_, give) => {
    const names = (await acceptedNames(give)).filter((name) => name.length > 2);
    const messages = await Promise.all(names.map((name) => messageOf(() => give({ [swapLetters(name)]: 1 }))));
    const suggested = messages.map((message) => /did you mean "(?:[\w[\]]+\.)*(\w+)"/.exec(message)?.[1]);
    expect(names.length).toBeGreaterThan(0);
    expect(suggested).toEqual(names);
  });
}

/** Tests that functions name each required option that is missing. */
export function describeRequiredOptions(
  cases: readonly (readonly [create: (options: never) => unknown, missing: readonly string[]])[],
): void {
  test.each(cases)("$0.name reports each missing option", async (create, missing) => {
    const lines = missing.map((name) => `${create.name} requires the option "${name}"`);
    await expect(async () => await Reflect.apply(create, undefined, [{}])).rejects.toThrow(
      Object.assign(new TypeError(lines.join("\n")), { code: "ERR_OPTIONS" }),
    );
  });
}

/** Returns the names that a refusal of an unknown name lists, without the path of their object. */
export async function acceptedNames(give: (wrong: object) => unknown): Promise<readonly string[]> {
  const message = await messageOf(() => give({ misspelledName: 1 }));
  const [, list = ""] = /; .* accepts (.*)$/m.exec(message) ?? [];
  return [...list.matchAll(/"(?:[\w[\]]+\.)*(\w+)"/g)].map(([, name = ""]) => name);
}

async function messageOf(give: () => unknown): Promise<string> {
  const error: unknown = await (async () => await give())().catch((reason: unknown) => reason);
  return error instanceof Error ? error.message : "";
}

/** Swaps the last two letters that differ. */
function swapLetters(name: string): string {
  const letters = name.split("");
  const at = letters.findLastIndex((letter, index) => index + 1 < name.length && letter !== name[index + 1]);
  return name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2);
}
