import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { SourceTree } from "../../testing/src/source-tree.ts";

export const protoportFolder: string = resolve(import.meta.dirname, "../..");
/** The packages whose sources have no modules: one imports no other package, the other is for tests. */
const withoutModules = new Set(["conformance", "testing"]);

/** The names of the packages whose sources are in {@link protoportTree}. */
export const protoportPackageNames: readonly string[] = readdirSync(protoportFolder).filter(
  (name) => !withoutModules.has(name) && existsSync(join(protoportFolder, name, "package.json")),
);

export const protoportTree: SourceTree = new SourceTree(
  Object.fromEntries(protoportPackageNames.map((name) => [name, join(protoportFolder, name, "src")])),
  "@protoport",
);
