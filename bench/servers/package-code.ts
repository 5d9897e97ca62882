import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The checkout whose code is run: this one, or the one that it is compared with. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../..");

/**
 * Imports an entry of a package, for example "gateway/index".
 *
 * A checkout to compare with may be from before the packages had a folder each.
 */
export async function importEntry<Module>(entry: string): Promise<Module> {
  const paths = [entry, entry.slice(entry.indexOf("/") + 1)];
  const [own = "", older = ""] = paths.map((path) => join(tree, "src", `${path}.ts`));
  return await import(pathToFileURL(existsSync(own) ? own : older).href);
}
