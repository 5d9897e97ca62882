import { statSync } from "node:fs";
import { buildRevision } from "./build-revision.ts";
import { type ReadServices, readServices, servicesOf } from "./read-services.ts";

/**
 * Reads an older definition's services: a descriptor set, or a revision in the current folder's git repository, which
 * `buf build` compiles.
 *
 * @throws InputError if it is neither, or if git or buf fails
 */
export async function readAgainst(name: string, labels: readonly string[] | undefined): Promise<ReadServices> {
  // A folder can have a branch's name.
  if (statSync(name, { throwIfNoEntry: false })?.isDirectory() === false) return await readServices(name, labels);
  return servicesOf(name, await buildRevision(name), labels);
}
