import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { bundle, sourceFile } from "./bundle.ts";
import { gatewayEntry, gatewayName, projectFolder, publishedManifest, readManifest } from "./manifest.ts";

// Makes dist/gateway and dist/plantstore, each as npm publishes it: `npm pack ./dist/gateway`. The package.json files
// of the checkout point at source, so that everything in it runs without a build.

/** Where tsc has put the declarations of all of src/ (tsconfig.build.json). */
const declarations = join(projectFolder, "dist/types");

/** A package to build. */
interface Package {
  /** Its name in dist/. */
  readonly name: string;
  /** The folder of its package.json and README.md. */
  readonly folder: string;
  /** The files of src/ that are loaded from outside. */
  readonly entries: readonly string[];
  /** The files and folders of src/ whose declarations it contains. */
  readonly declared: readonly string[];
  /** Other files, with their place in the package. */
  readonly others: Readonly<Record<string, string>>;
}

const packages: readonly Package[] = [
  {
    name: "gateway",
    folder: dirname(gatewayEntry),
    entries: ["gateway/index.ts", "gateway/fetch/entry.ts"],
    declared: ["gateway"],
    others: {},
  },
  {
    name: "plantstore",
    folder: projectFolder,
    // No import leads to the worker of SQLite, because it is started as a thread.
    entries: [
      "plantstore/index.ts",
      "operators/operations/index.ts",
      "operators/telemetry/index.ts",
      "operators/opentelemetry/index.ts",
      "plantstore/client/index.ts",
      "plantstore/client/connect.ts",
      "plantstore/cli/main.ts",
      "plantstore/plants/sqlite/worker.ts",
    ],
    declared: ["operators", "plantstore"],
    others: {
      "openapi.json": "openapi.json",
      man: "man",
      proto: "proto",
      "src/operators/operations/docs-page/files": "lib/operators/operations/docs-page/files",
    },
  },
];

for (const { name, folder, entries, declared, others } of packages) {
  const built = join(projectFolder, "dist", name);
  const file = join(folder, "package.json");
  const manifest = readManifest(file);
  await bundle(manifest, entries.map(sourceFile), join(built, "lib"));
  for (const path of declared) cpSync(join(declarations, path), join(built, "lib", path), { recursive: true });
  for (const [from, to] of Object.entries(others))
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  cpSync(join(folder, "README.md"), join(built, "README.md"));
  cpSync(join(projectFolder, "LICENSE"), join(built, "LICENSE"));
  writeFileSync(join(built, "package.json"), `${JSON.stringify(publishedManifest(file, manifest), null, 2)}\n`);
}

// The scripts of the docs page, for browsers.
for (const file of globSync(join(projectFolder, "dist/plantstore/lib/operators/operations/docs-page/files/*.ts"))) {
  writeFileSync(file.replace(/\.ts$/, ".js"), stripTypeScriptTypes(readFileSync(file, "utf8")));
  rmSync(file);
}

// plantstore/gateway is the package of the gateway by another name, so that there is one copy of it.
const room = join(projectFolder, "dist/plantstore/lib/gateway");
mkdirSync(join(room, "fetch"), { recursive: true });
for (const kind of ["js", "d.ts"]) {
  writeFileSync(join(room, `index.${kind}`), `export * from "${gatewayName}";\n`);
  writeFileSync(join(room, `fetch/entry.${kind}`), `export * from "${gatewayName}/fetch";\n`);
}

rmSync(declarations, { recursive: true });
