import { statSync } from "node:fs";
import { buildRevision } from "./build-revision.ts";
import { type ReadServices, readServices, servicesOf } from "./read-services.ts";

/**
 * Reads an older definition's services from a descriptor set or a git revision. `buf build` compiles the revision.
 *
 * @throws InputError if `name` is neither a descriptor set nor a revision, or if git or buf fails
 */
export async function readAgainst(name: string, labels: readonly string[] | undefined): Promise<ReadServices> {
  // A folder and a branch can have the same name.
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === false) return await readServices(name, labels);
  return servicesOf(name, await buildRevision(name), labels);
}
