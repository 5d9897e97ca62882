import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writePageScript } from "../../packages/docs-page/src/page-script.ts";
import { bundle } from "./bundle.ts";
import { writeNodeCommands, writeNodeEntries } from "./entries.ts";
import { packageFolders, pathsOf, projectFolder, publishedManifest, readManifest } from "./manifest.ts";
import { writeNotice } from "./notice.ts";
import { bundleTypes } from "./types.ts";

// Makes a folder in dist/ for each package as npm publishes it: `npm pack ./dist/gateway`. The package.json files of the
// checkout name source files, so that everything in it runs without a build. conformance.ts makes dist/conformance.

/** Where tsc has put the declarations of all sources (tsconfig.build.json). */
const declarations = join(projectFolder, "dist/types");

/** What a package has in addition to its entries. */
interface More {
  /** Source files that no import leads to, because they are started as a thread. */
  readonly started?: readonly string[];
  /** The packages that are part of its code: it loads in pages without anything that only servers need. */
  readonly included?: readonly string[];
  /** Whether it has source maps, which are larger than all else; node reads them when it is told to. */
  readonly hasSourceMaps?: boolean;
  /**
   * The packages that its commands include, with what these import, so that they start from few files. Other commands
   * are started from `node/`, which reports what an installation lacks.
   */
  readonly ofCommands?: readonly string[];
  /** Other files and folders of the project, with their place in the package. */
  readonly others?: Readonly<Record<string, string>>;
  /** Folders of `lib/` that nobody imports from. */
  readonly unexported?: readonly string[];
}

/** What packages have in addition, by their folders in dist/. */
const additions: Readonly<Record<string, More>> = {
  gateway: { hasSourceMaps: true, others: { "packages/gateway/proto/google": "proto/google" } },
  "docs-page": {
    unexported: ["files"],
    others: {
      "packages/docs-page/src/files": "lib/files",
      // What reads CommonMark in the page is part of its script.
      "node_modules/marked/LICENSE": "lib/files/LICENSE-marked",
    },
  },
  "rest-client": { included: ["@plantstore/gateway"] },
  plantstore: {
    started: ["src/stores/sqlite/worker.ts"],
    ofCommands: [
      "@plantstore/auth",
      "@plantstore/docs-page",
      "@plantstore/gateway",
      "@plantstore/http-engine",
      "@plantstore/telemetry",
      "@bufbuild/protobuf",
      "@connectrpc/connect",
      "jose",
      "pino",
    ],
    others: {
      "openapi.json": "openapi.json",
      man: "man",
      proto: "proto",
      "packages/gateway/proto/google": "proto/google",
      "src/README.md": "README.md",
      "node_modules/@opentelemetry/api/LICENSE": "bin/LICENSE-Apache-2.0",
    },
  },
};

for (const [name, folder] of packageFolders) {
  if (name !== "conformance") await buildPackage(name, folder, additions[name] ?? {});
}

async function buildPackage(
  name: string,
  folder: string,
  { started = [], included = [], hasSourceMaps = false, ofCommands = [], others = {}, unexported = [] }: More,
): Promise<void> {
  const source = join(projectFolder, folder);
  const manifest = readManifest(join(source, "package.json"));
  const built = join(projectFolder, "dist", name);
  const lib = join(built, "lib");
  const commands = pathsOf(manifest.bin);
  const imported = pathsOf(manifest.exports);
  const startsFromNode = ofCommands.length === 0;
  const inLib = [...imported, ...(startsFromNode ? commands : [])].map((path) => `src/${path}.ts`);
  const { entries } = await bundle(manifest, source, [...inLib, ...started], lib, { hasSourceMaps, included });
  await bundleTypes(join(declarations, folder, "src"), imported, lib);
  writeNodeEntries(
    built,
    entries.filter(({ path }) => imported.includes(path)),
    Object.keys(manifest.peerDependenciesMeta ?? {}),
  );
  if (startsFromNode) writeNodeCommands(built, commands);
  else {
    const files = [...commands.map((path) => `src/${path}.ts`), ...started];
    const bin = join(built, "bin");
    const { files: bundled } = await bundle(manifest, source, files, bin, { included: ofCommands, isProgram: true });
    writeFileSync(join(bin, "package.json"), '{ "type": "commonjs" }\n');
    writeNotice(readFileSync(join(source, "src/command/NOTICE"), "utf8"), bundled, join(bin, "NOTICE"));
  }
  const texts = { [join(folder, "README.md")]: "README.md", LICENSE: "LICENSE" };
  for (const [from, to] of Object.entries({ ...texts, ...others })) {
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  }
  const commandFolder = startsFromNode ? "node" : "bin";
  const published = publishedManifest(manifest, folder, { included, commandFolder, unexported });
  writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

// The scripts of the docs page, as one for browsers.
const pageFiles = join(projectFolder, "dist/docs-page/lib/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());
cpSync(pageFiles, join(projectFolder, "dist/plantstore/bin/docs-page/files"), { recursive: true });

rmSync(declarations, { recursive: true });
