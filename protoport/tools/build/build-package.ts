import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { writeNodeCommands, writeNodeEntries } from "./entries.ts";
import { projectFolder, publishedManifest, readManifest, sourcesOf } from "./manifest.ts";
import { writeNotice } from "./notice.ts";
import { bundleTypes } from "./types.ts";

/** The folder to which tsc has written the declarations for all sources (tsconfig.build.json). */
export const declarations: string = join(projectFolder, "dist/types");

/** A package's build options. */
export interface PackageOptions {
  /** Source files that are started as a thread, and that no entry imports. */
  readonly threads?: readonly string[];
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

/**
 * Builds a package to `dist/`. `npm pack ./dist/NAME` packs the folder.
 *
 * @param name - the folder's name in `dist/`
 * @param folder - the package's folder in the checkout, relative to the project folder
 */
export async function buildPackage(
  name: string,
  folder: string,
  {
    threads = [],
    hasSharedChunks = false,
    hasSourceMaps = false,
    includedInCommands = [],
    files = {},
    unexported = [],
  }: PackageOptions = {},
): Promise<void> {
  const source = join(projectFolder, folder);
  const manifest = readManifest(join(source, "package.json"));
  const built = join(projectFolder, "dist", name);
  const lib = join(built, "lib");
  const commands = sourcesOf(manifest.bin);
  const imported = sourcesOf(manifest.exports);
  const startsFromNode = includedInCommands.length === 0;
  const inLib = [...imported.values(), ...(startsFromNode ? commands.values() : []), ...threads];
  const { entries } = await bundle(manifest, source, inLib, lib, { hasSharedChunks, hasSourceMaps });
  await bundleTypes(join(declarations, folder), imported, lib);
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
  const published = publishedManifest(manifest, folder, { commandFolder, unexported });
  writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}
