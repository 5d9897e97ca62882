import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "rolldown";
import { expect } from "vitest";
import { projectFolder, type TempFolder } from "@protoport/testing";

/** Returns the arguments with which workerd serves a folder's `worker.mjs`, and prints the port. */
export function prepareWorkerd(folder: TempFolder): readonly string[] {
  // The date selects Cloudflare's behaviour.
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
    compatibilityDate = "2025-01-01",
  ))],
  sockets = [(name = "http", http = (), service = "main")],
);
`;
  writeFileSync(folder.file("config.capnp"), config);
  return ["serve", "--verbose", "--socket-addr=http=127.0.0.1:0", "--control-fd=1", folder.file("config.capnp")];
}

/** Returns a runtime's path in this folder. */
export const resolveRuntime = (command: string): string =>
  createRequire(join(import.meta.dirname, "package.json")).resolve(command);

/** Bundles a project source file, which must need nothing from node. */
export async function bundleForWeb(source: string, file: string): Promise<void> {
  const { output } = await build({
    input: join(projectFolder, source),
    platform: "browser",
    output: { file, format: "esm", codeSplitting: false },
  });
  const [{ imports, dynamicImports, fileName }] = output;
  // A dynamic import of a bundled module names the bundle.
  expect([...imports, ...dynamicImports].filter((name) => name !== fileName)).toEqual([]);
}
