import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { writePageScript } from "../../packages/docs-page/src/page-script.ts";
import { bundle } from "./bundle.ts";
import { writeNodeCommands, writeNodeEntries } from "./entries.ts";
import { pathsOf, projectFolder, publishedManifest, readManifest } from "./manifest.ts";
import { writeNotice } from "./notice.ts";
import { bundleTypes } from "./types.ts";

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
  /**
   * The packages that its commands have in them, with what these import, so that they start from few files. Other
   * commands are started from `node/`, which says what an installation lacks.
   */
  readonly ofCommands?: readonly string[];
  /** Other files and folders of the project, with their place in the package. */
  readonly others?: Readonly<Record<string, string>>;
}

/** The packages, by their folders in src/ and dist/. */
const packages: Readonly<Record<string, More>> = {
  gateway: {
    hasSourceMaps: true,
    ofPages: ["./rest-client/index.ts"],
    others: {
      "packages/gateway/proto/google": "packages/gateway/proto/google",
      "packages/docs-page/src/files": "lib/docs-page/files",
      // What reads CommonMark in the page is part of its script.
      "node_modules/marked/LICENSE": "lib/docs-page/files/LICENSE-marked",
    },
  },
  operators: {},
  plantstore: {
    started: ["./plants/sqlite/worker.ts"],
    ofCommands: [
      "@plantstore/gateway",
      "@plantstore/operators",
      "@bufbuild/protobuf",
      "@connectrpc/connect",
      "jose",
      "pino",
    ],
    others: {
      "openapi.json": "openapi.json",
      man: "man",
      proto: "proto",
      "node_modules/@opentelemetry/api/LICENSE": "command/LICENSE-Apache-2.0",
    },
  },
};

for (const [folder, more] of Object.entries(packages)) {
  const { started = [], ofPages = [], hasSourceMaps = false, ofCommands = [], others = {} } = more;
  const source = join(projectFolder, "src", folder);
  const manifest = readManifest(join(source, "package.json"));
  const built = join(projectFolder, "dist", folder);
  const lib = join(built, "lib");
  const commands = pathsOf(manifest.bin);
  const imported = pathsOf(manifest.exports);
  const startsFromNode = ofCommands.length === 0;
  const inLib = [...imported, ...(startsFromNode ? commands : [])].map((path) => `./${path}.ts`);
  const shared = inLib.filter((file) => !ofPages.includes(file));
  const bundled = [...(await bundle(manifest, source, [...shared, ...started], lib, { hasSourceMaps })).entries];
  for (const file of ofPages) {
    bundled.push(...(await bundle(manifest, source, [file], lib, { isShared: false })).entries);
  }
  const entries = bundled.filter(({ path }) => imported.includes(path));
  await bundleTypes(join(declarations, folder), imported, lib);
  writeNodeEntries(built, entries);
  if (startsFromNode) writeNodeCommands(built, commands);
  else {
    const files = [...commands.map((path) => `${path}.ts`), ...started].map((file) => join(folder, file));
    const command = join(built, "command");
    const { files: included } = await bundle(manifest, dirname(source), files, command, { included: ofCommands });
    writeFileSync(join(command, "package.json"), '{ "type": "commonjs" }\n');
    writeNotice(readFileSync(join(source, "cli/NOTICE"), "utf8"), included, join(command, "NOTICE"));
  }
  for (const [from, to] of Object.entries(others)) {
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  }
  cpSync(join(source, "README.md"), join(built, "README.md"));
  cpSync(join(projectFolder, "LICENSE"), join(built, "LICENSE"));
  const published = publishedManifest(manifest, folder, startsFromNode ? "node" : `command/${folder}`);
  writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

// The scripts of the docs page, as one for browsers.
const pageFiles = join(projectFolder, "dist/gateway/lib/docs-page/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());
cpSync(pageFiles, join(projectFolder, "dist/plantstore/command/gateway/docs-page/files"), { recursive: true });

rmSync(declarations, { recursive: true });
