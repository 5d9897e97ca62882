import { cpSync, globSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writePageScript } from "../../src/gateway/docs-page/page-script.ts";
import { bundle } from "./bundle.ts";
import { removeUnusedTypes, writeNodeEntries } from "./entries.ts";
import { entriesOf, exportedPaths, projectFolder, publishedManifest, readManifest, sourceFolder } from "./manifest.ts";

// Makes dist/gateway, dist/operators and dist/plantstore, each as npm publishes it: `npm pack ./dist/gateway`. The
// package.json files of the checkout point at source, so that everything in it runs without a build.

/** Where tsc has put the declarations of all of src/ (tsconfig.build.json). */
const declarations = join(projectFolder, "dist/types");

/** What a package has besides its entries. */
interface More {
  /** Files that no import leads to, because they are started as a thread. */
  readonly started?: readonly string[];
  /** Whether it has source maps, which are more than all else; node reads them when it is told to. */
  readonly hasSourceMaps?: boolean;
  /** Other files and folders of the project, with their place in the package. */
  readonly others?: Readonly<Record<string, string>>;
}

/** The packages, by their folders in src/ and dist/. */
const packages: Readonly<Record<string, More>> = {
  gateway: {
    hasSourceMaps: true,
    others: {
      "proto/google": "proto/google",
      "src/gateway/docs-page/files": "lib/docs-page/files",
      // What reads CommonMark in the page is part of its script.
      "node_modules/marked/LICENSE": "lib/docs-page/files/LICENSE-marked",
    },
  },
  operators: {},
  plantstore: {
    started: ["./plants/sqlite/worker.ts"],
    others: { "openapi.json": "openapi.json", man: "man", proto: "proto" },
  },
};

for (const [folder, { started = [], hasSourceMaps = false, others = {} }] of Object.entries(packages)) {
  const source = join(sourceFolder, folder);
  const manifest = readManifest(join(source, "package.json"));
  const built = join(projectFolder, "dist", folder);
  const lib = join(built, "lib");
  const bundled = await bundle(manifest, source, [...entriesOf(manifest), ...started], lib, hasSourceMaps);
  cpSync(join(declarations, folder), lib, { recursive: true });
  const imported = exportedPaths(manifest);
  const entries = bundled.filter(({ path }) => imported.includes(path));
  removeUnusedTypes(lib, entries);
  writeNodeEntries(built, entries);
  for (const [from, to] of Object.entries(others)) {
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  }
  cpSync(join(source, "README.md"), join(built, "README.md"));
  cpSync(join(projectFolder, "LICENSE"), join(built, "LICENSE"));
  writeFileSync(join(built, "package.json"), `${JSON.stringify(publishedManifest(manifest, folder), null, 2)}\n`);
}

// The scripts of the docs page, as one for browsers.
const pageFiles = join(projectFolder, "dist/gateway/lib/docs-page/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());

rmSync(declarations, { recursive: true });
