import { cpSync, globSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writePageScript } from "../../src/gateway/docs-page/page-script.ts";
import { bundle } from "./bundle.ts";
import { removeUnusedTypes, writeNodeCommands, writeNodeEntries } from "./entries.ts";
import {
  commandPaths,
  entriesOf,
  exportedPaths,
  projectFolder,
  publishedManifest,
  readManifest,
  sourceFolder,
} from "./manifest.ts";

// Makes dist/gateway, dist/operators and dist/plantstore, each as npm publishes it: `npm pack ./dist/gateway`. The
// package.json files of the checkout point at source, so that everything in it runs without a build.

/** Where tsc has put the declarations of all of src/ (tsconfig.build.json). */
const declarations = join(projectFolder, "dist/types");

/** What a package has besides its entries. */
interface More {
  /** Files that no import leads to, because they are started as a thread. */
  readonly started?: readonly string[];
  /**
   * Entries that pages load, each with its own copy of all it needs, since shared chunks have what servers need, too. The
   * sources of these copies are in the maps of the others.
   */
  readonly ofPages?: readonly string[];
  /** Whether it has source maps, which are more than all else; node reads them when it is told to. */
  readonly hasSourceMaps?: boolean;
  /** Whether its commands are started from `node/`, which says what an installation lacks; else they do so themselves. */
  readonly startsFromNode?: boolean;
  /** Other files and folders of the project, with their place in the package. */
  readonly others?: Readonly<Record<string, string>>;
}

/** The packages, by their folders in src/ and dist/. */
const packages: Readonly<Record<string, More>> = {
  gateway: {
    hasSourceMaps: true,
    startsFromNode: true,
    ofPages: ["./rest-client/index.ts"],
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

for (const [folder, more] of Object.entries(packages)) {
  const { started = [], ofPages = [], hasSourceMaps = false, startsFromNode = false, others = {} } = more;
  const source = join(sourceFolder, folder);
  const manifest = readManifest(join(source, "package.json"));
  const built = join(projectFolder, "dist", folder);
  const lib = join(built, "lib");
  const shared = entriesOf(manifest).filter((file) => !ofPages.includes(file));
  const bundled = [...(await bundle(manifest, source, [...shared, ...started], lib, hasSourceMaps))];
  for (const file of ofPages) bundled.push(...(await bundle(manifest, source, [file], lib, false, false)));
  cpSync(join(declarations, folder), lib, { recursive: true });
  const imported = exportedPaths(manifest);
  const entries = bundled.filter(({ path }) => imported.includes(path));
  removeUnusedTypes(lib, entries);
  writeNodeEntries(built, entries);
  if (startsFromNode) writeNodeCommands(built, commandPaths(manifest));
  for (const [from, to] of Object.entries(others)) {
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  }
  cpSync(join(source, "README.md"), join(built, "README.md"));
  cpSync(join(projectFolder, "LICENSE"), join(built, "LICENSE"));
  const published = publishedManifest(manifest, folder, startsFromNode ? "node" : "lib");
  writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

// The scripts of the docs page, as one for browsers.
const pageFiles = join(projectFolder, "dist/gateway/lib/docs-page/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());

rmSync(declarations, { recursive: true });
