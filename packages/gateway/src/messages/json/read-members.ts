import { JsonScanner } from "./json-scanner.ts";

/** The JSON texts of the members of an object, by name. */
export type JsonMembers = ReadonlyMap<string, string>;

/** The members of an empty object. */
export const noMembers: JsonMembers = new Map();

/**
 * Returns the members of a JSON object, and those of the objects on a path of names below it: none where there is no
 * object. Each part of the text is read once.
 *
 * @returns the members of each level, one level more than there are names
 * @throws FieldProblem for any other text
 */
export function readMembers(text: string, path: readonly string[] = []): JsonMembers[] {
  const levels = [new Map<string, string>(), ...path.map(() => new Map<string, string>())];
  const scanner = new JsonScanner(text);
  const readLevel = (level: number): void =>
    scanner.readObject((name) => {
      const kind = scanner.peek();
      const start = scanner.at;
      if (name === path[level] && kind === "object") readLevel(level + 1);
      else scanner.skipValue();
      levels[level]?.set(name, text.slice(start, scanner.at));
    });
  readLevel(0);
  scanner.finish();
  return levels;
}
