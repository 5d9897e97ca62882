import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { GatewayOptions } from "../../gateway/src/index.ts";

/** The checkout whose code runs, which is this checkout or the checkout that is compared with it. */
const tree = process.env["BENCH_TREE"] ?? join(import.meta.dirname, "../../..");

/** Former paths of entries that the bench's programs import. The newest path comes first. */
const formerPaths: Readonly<Record<string, readonly string[]>> = {
  "protoport/gateway/src/index.ts": ["src/gateway/index.ts"],
  "protoport/gateway/src/validation/index.ts": [
    "protoport/gateway/src/validation/index.ts",
    "src/gateway/validation/index.ts",
  ],
  "protoport/gateway/src/engine/index.ts": ["src/gateway/http-engine/index.ts"],
  "protoport/proxy/src/create-proxy.ts": ["src/gateway/create-proxy.ts"],
  "protoport/proxy/src/client/entry.ts": ["src/gateway/client/entry.ts"],
};

/** Imports an entry from the checkout, in which the entry may have a former path. */
export async function importEntry<Module>(entry: string, ...former: readonly string[]): Promise<Module> {
  return await import(pathToFileURL(findEntry(entry, former)).href);
}

/** Returns the option that selects the HTTP engine, or no option for a checkout that uses the engine by default. */
export async function ownHttp(): Promise<Pick<GatewayOptions, "engine">> {
  const entry = "protoport/gateway/src/engine/index.ts";
  if (!existsSync(findEntry(entry))) return {};
  const { createHttpEngine } = await importEntry<typeof import("../../gateway/src/engine/index.ts")>(entry);
  return { engine: createHttpEngine() };
}

function findEntry(entry: string, former: readonly string[] = []): string {
  return (
    [entry, ...(formerPaths[entry] ?? former)].map((path) => join(tree, path)).find(existsSync) ?? join(tree, entry)
  );
}
