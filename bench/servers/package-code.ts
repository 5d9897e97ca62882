import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The checkout whose code is run: this one, or the one that it is compared with. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../..");

/** The package as it is built, where that is what is measured. */
const built = process.env["PLANTSTORE_DIST"];

/** Imports an entry of the package, for example "gateway/index": from its source, or as it is built. */
export async function importEntry<Module>(entry: string): Promise<Module> {
  const file = built === undefined ? join(tree, "src", `${entry}.ts`) : join(built, `${entry}.js`);
  return await import(pathToFileURL(file).href);
}
