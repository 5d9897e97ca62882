import { JsonScanner } from "./json-scanner.ts";

/** The JSON texts of the members of an object, by name. */
export type JsonMembers = ReadonlyMap<string, string>;

/** Returns the members of a JSON object. @throws FieldProblem for any other text */
export function readMembers(text: string): JsonMembers {
  const members = new Map<string, string>();
  const scanner = new JsonScanner(text);
  scanner.readObject((name) => {
    const start = scanner.mark().at;
    scanner.skipValue();
    members.set(name, text.slice(start, scanner.mark().at).trim());
  });
  scanner.finish();
  return members;
}
