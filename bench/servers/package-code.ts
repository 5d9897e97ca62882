import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { GatewayOptions } from "../../packages/gateway/src/index.ts";

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

/** Returns the option that selects the gateway's own HTTP; none for a checkout that serves it anyway. */
export async function ownHttp(): Promise<Pick<GatewayOptions, "engine">> {
  if (!existsSync(join(tree, "packages/http-engine/src/index.ts"))) return {};
  const entry = "gateway/http-engine/index";
  const { createHttpEngine } = await importEntry<typeof import("../../packages/http-engine/src/index.ts")>(entry);
  return { engine: createHttpEngine() };
}
