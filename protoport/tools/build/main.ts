import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writePageScript } from "../../docs-page/src/page-script.ts";
import { bundle } from "./bundle.ts";
import { writeNodeCommands, writeNodeEntries } from "./entries.ts";
import {
  gatewayParts,
  packageFolders,
  projectFolder,
  publishedManifest,
  readManifest,
  readPackage,
  sourcesOf,
} from "./manifest.ts";
import { writeNotice } from "./notice.ts";
import { bundleTypes } from "./types.ts";

// Builds a folder in dist/ for each package. `npm pack ./dist/gateway` packs the gateway's folder. The checkout's
// package.json files name source files, so that the checkout runs without a build. conformance.ts builds
// dist/conformance.

/** The folder to which tsc has written the declarations for all sources (tsconfig.build.json). */
const declarations = join(projectFolder, "dist/types");

/** A package's build options. */
interface PackageOptions {
  /** Source files that are started as a thread, and that no entry imports. */
  readonly threads?: readonly string[];
  /**
   * Packages to bundle into the package's code, because they are not published by themselves. A package that browsers
   * load also bundles published packages, because it must not depend on code that only servers need.
   */
  readonly included?: readonly string[];
  /** Whether code that several entries load is in a few files. */
  readonly hasSharedChunks?: boolean;
  /** Whether to write source maps, which are larger than the code. node reads them with `--enable-source-maps`. */
  readonly hasSourceMaps?: boolean;
  /**
   * Packages to bundle into the package's commands, with their imports, so that the commands start from few files.
   * Without this option, commands start from `node/`, which reports missing peers.
   */
  readonly includedInCommands?: readonly string[];
  /** Further project files and folders to publish, with their paths in the package. */
  readonly files?: Readonly<Record<string, string>>;
  /** Folders in `lib/` that cannot be imported. */
  readonly unexported?: readonly string[];
}

/** The packages' build options, by their folders in dist/. */
const packageOptions: Readonly<Record<string, PackageOptions>> = {
  gateway: {
    included: gatewayParts,
    hasSharedChunks: true,
    hasSourceMaps: true,
    files: { "protoport/gateway/proto/google": "proto/google" },
  },
  auth: { files: { "protoport/auth/proto": "proto" } },
  "docs-page": {
    unexported: ["files"],
    files: {
      "protoport/docs-page/src/files": "lib/files",
      // The CommonMark parser is part of the page's script.
      "node_modules/marked/LICENSE": "lib/files/LICENSE-marked",
    },
  },
  "rest-client": { included: gatewayParts },
  plantstore: {
    threads: ["src/stores/sqlite/worker.ts"],
    includedInCommands: [
      "@protoport/auth",
      "@protoport/docs-page",
      "@protoport/gateway",
      ...gatewayParts,
      "@protoport/gateway/engine",
      "@protoport/telemetry",
      "@bufbuild/protobuf",
      "@connectrpc/connect",
      "jose",
      "pino",
    ],
    files: {
      "openapi.json": "openapi.json",
      man: "man",
      proto: "proto",
      "protoport/gateway/proto/google": "proto/google",
      "src/README.md": "README.md",
      "node_modules/@opentelemetry/api/LICENSE": "bin/LICENSE-Apache-2.0",
    },
  },
};

for (const [name, folder] of packageFolders) {
  if (name !== "conformance") await buildPackage(name, folder, packageOptions[name] ?? {});
}

async function buildPackage(
  name: string,
  folder: string,
  {
    threads = [],
    included = [],
    hasSharedChunks = false,
    hasSourceMaps = false,
    includedInCommands = [],
    files = {},
    unexported = [],
  }: PackageOptions,
): Promise<void> {
  const source = join(projectFolder, folder);
  const manifest = folder === "." ? readManifest(join(source, "package.json")) : readPackage(name);
  const built = join(projectFolder, "dist", name);
  const lib = join(built, "lib");
  const commands = sourcesOf(manifest.bin);
  const imported = sourcesOf(manifest.exports);
  const startsFromNode = includedInCommands.length === 0;
  const inLib = [...imported.values(), ...(startsFromNode ? commands.values() : []), ...threads];
  const { entries } = await bundle(manifest, source, inLib, lib, { hasSharedChunks, hasSourceMaps, included });
  await bundleTypes(join(declarations, folder), imported, lib, included);
  writeNodeEntries(
    built,
    entries.filter(({ path }) => imported.has(path)),
    Object.keys(manifest.peerDependenciesMeta ?? {}),
  );
  if (startsFromNode) writeNodeCommands(built, [...commands.keys()]);
  else {
    const programs = [...commands.values(), ...threads];
    const bin = join(built, "bin");
    const options = { included: includedInCommands, isProgram: true };
    const { files: bundled } = await bundle(manifest, source, programs, bin, options);
    writeFileSync(join(bin, "package.json"), '{ "type": "commonjs" }\n');
    writeNotice(readFileSync(join(source, "src/command/NOTICE"), "utf8"), bundled, join(bin, "NOTICE"));
  }
  const commonFiles = { [join(folder, "README.md")]: "README.md", LICENSE: "LICENSE" };
  for (const [from, to] of Object.entries({ ...commonFiles, ...files })) {
    cpSync(join(projectFolder, from), join(built, to), { recursive: true });
  }
  const commandFolder = startsFromNode ? "node" : "bin";
  const published = publishedManifest(manifest, folder, { included, commandFolder, unexported });
  writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

// Bundles the docs page's scripts into a single script for browsers.
const pageFiles = join(projectFolder, "dist/docs-page/lib/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());
cpSync(pageFiles, join(projectFolder, "dist/plantstore/bin/docs-page/files"), { recursive: true });

rmSync(declarations, { recursive: true });
