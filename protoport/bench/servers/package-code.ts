import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The checkout whose code runs, which is this checkout or the checkout that is compared with it. */
const tree = process.env["BENCH_TREE"] ?? join(import.meta.dirname, "../../..");

/** The paths of entries before the packages were in protoport/. */
const formerPaths: Readonly<Record<string, readonly string[]>> = {
  "protoport/gateway/src/index.ts": ["packages/gateway/src/index.ts"],
  "protoport/gateway/src/validation/index.ts": ["packages/validation/src/index.ts"],
  "protoport/gateway/src/engine/index.ts": ["packages/http-engine/src/index.ts"],
  "protoport/proxy/src/create-proxy.ts": ["packages/proxy/src/create-proxy.ts"],
  "protoport/proxy/src/client/entry.ts": ["packages/proxy/src/client/entry.ts"],
};

/** Imports an entry from the checkout, in which the entry may have a former path. */
export async function importEntry<Module>(entry: string, ...former: readonly string[]): Promise<Module> {
  return await import(pathToFileURL(findEntry(entry, former)).href);
}

/** Returns the option that selects the HTTP engine in an earlier checkout, or no option if there is no choice. */
export async function ownHttp(): Promise<object> {
  const entry = "protoport/gateway/src/engine/index.ts";
  if (!existsSync(findEntry(entry))) return {};
  const { createHttpEngine } = await importEntry<{ readonly createHttpEngine?: () => object }>(entry);
  return createHttpEngine === undefined ? {} : { engine: createHttpEngine() };
}

function findEntry(entry: string, former: readonly string[] = []): string {
  return (
    [entry, ...(formerPaths[entry] ?? former)].map((path) => join(tree, path)).find(existsSync) ?? join(tree, entry)
  );
}
