import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The checkout whose code is run: this one, or the one that it is compared with. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../..");

/** The packages as they are built, where that is what is measured. */
const built = process.env["PLANTSTORE_DIST"];

/**
 * Imports an entry of a package, for example "gateway/index": from its source, or as it is built.
 *
 * A checkout to compare with may be from before the packages had a folder each.
 */
export async function importEntry<Module>(entry: string): Promise<Module> {
  const [owner, ...path] = entry.split("/");
  const [own, older] = [join(tree, "src", `${entry}.ts`), join(tree, "src", `${path.join("/")}.ts`)];
  const source = existsSync(own) ? own : older;
  const file = built === undefined ? source : join(built, owner ?? "", "lib", `${path.join("/")}.js`);
  return await import(pathToFileURL(file).href);
}
