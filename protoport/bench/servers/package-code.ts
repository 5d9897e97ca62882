import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { GatewayOptions } from "../../gateway/src/index.ts";

/** The checkout whose code runs, which is this checkout or the checkout that is compared with it. */
const tree = process.env["PLANTSTORE_TREE"] ?? join(import.meta.dirname, "../../..");

/** The entries that the bench's programs import, with the entries' former paths. The newest path comes first. */
const entries = {
  "src/index.ts": ["src/plantstore/index.ts"],
  "src/server/plant-tools.ts": ["src/plantstore/server/plant-tools.ts"],
  "protoport/gateway/src/index.ts": ["src/gateway/index.ts"],
  "protoport/gateway/src/validation/index.ts": [
    "protoport/gateway/src/validation/index.ts",
    "src/gateway/validation/index.ts",
  ],
  "protoport/gateway/src/engine/index.ts": ["src/gateway/http-engine/index.ts"],
  "protoport/proxy/src/create-proxy.ts": ["src/gateway/create-proxy.ts"],
  "protoport/proxy/src/client/entry.ts": ["src/gateway/client/entry.ts"],
  "protoport/telemetry/src/metrics/index.ts": ["src/gateway/metrics/index.ts"],
  "protoport/telemetry/src/opentelemetry/index.ts": ["src/gateway/opentelemetry/index.ts"],
} as const;

type Entry = keyof typeof entries;

/** Imports an entry from the checkout, in which the entry may have a former path. */
export async function importEntry<Module>(entry: Entry): Promise<Module> {
  return await import(pathToFileURL(findEntry(entry)).href);
}

/** Returns the option that selects the HTTP engine, or no option for a checkout that uses the engine by default. */
export async function ownHttp(): Promise<Pick<GatewayOptions, "engine">> {
  const entry = "protoport/gateway/src/engine/index.ts";
  if (!existsSync(findEntry(entry))) return {};
  const { createHttpEngine } = await importEntry<typeof import("../../gateway/src/engine/index.ts")>(entry);
  return { engine: createHttpEngine() };
}

function findEntry(entry: Entry): string {
  return [entry, ...entries[entry]].map((path) => join(tree, path)).find(existsSync) ?? join(tree, entry);
}
