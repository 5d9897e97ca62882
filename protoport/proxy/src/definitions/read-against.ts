import { statSync } from "node:fs";
import type { VisibilityOptions } from "@protoport/gateway/descriptors";
import { type Definition, parseDefinition, readDefinition } from "./definition.ts";
import { buildRevision } from "./build-revision.ts";

/**
 * Reads an older definition from a descriptor set or a git revision. `buf build` compiles the revision.
 *
 * @throws InputError if `name` is neither a descriptor set nor a revision, or if git or buf fails
 */
export async function readAgainst(name: string, visibility: VisibilityOptions | undefined): Promise<Definition> {
  // A folder and a branch can have the same name.
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === false) return await readDefinition(name, visibility);
  return parseDefinition(name, await buildRevision(name), visibility);
}
