import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { build, type OutputChunk, type Plugin } from "rolldown";
import type { Entry } from "./entries.ts";
import { type Manifest, projectFolder, readManifest } from "./manifest.ts";

/** How {@link bundle} makes a bundle. */
export interface BundleOptions {
  readonly hasSourceMaps?: boolean;
  /** The packages that become part of the bundle. Others stay imports. */
  readonly included?: readonly string[];
  /** Whether the bundle is a program, whose entries export nothing. */
  readonly isProgram?: boolean;
}

/** What {@link bundle} made. */
export interface Bundle {
  /** The entries, by their paths in the folder of the bundle. */
  readonly entries: readonly Entry[];
  /** The files whose code is in it. */
  readonly files: readonly string[];
}

/**
 * Bundles a package's own code into few files.
 *
 * Node needs a third of a millisecond to find and read a module, and the gateway has two hundred: before the first
 * response that is as much as everything else it does. Dependencies stay imports, so that a user's `ConnectError` is
 * the package's. Nothing is minified, so that stack traces are readable.
 *
 * @param source - the folder that all files are in
 * @param files - the source files that are entries, by their paths in that folder
 * @param built - the folder to write to
 * @throws Error when the code imports a package that the manifest does not name, or a file of another package
 */
export async function bundle(
  manifest: Manifest,
  source: string,
  files: readonly string[],
  built: string,
  { hasSourceMaps = false, included = [], isProgram = false }: BundleOptions = {},
): Promise<Bundle> {
  const nameInSource = (file: string): string => builtPath(relative(source, file));
  const namesInPlace = new Set<string>();
  // A module that looks for files beside itself keeps its place, so that the built one finds them too.
  const inPlace = {
    debugName: "in place",
    name: (file: string) => {
      if (!looksBesideItself(file)) return null;
      namesInPlace.add(nameInSource(file));
      return nameInSource(file);
    },
  };
  const { output } = await build({
    cwd: source,
    input: Object.fromEntries(files.map((file) => [nameInSource(join(source, file)), join(source, file)])),
    platform: "node",
    // What is included includes what it imports.
    external: (specifier, importer = "") =>
      isBuiltin(specifier) ||
      !(
        isPath(specifier) ||
        isSibling(specifier) ||
        included.includes(packageOf(specifier)) ||
        importer.includes("/node_modules/")
      ),
    plugins: [
      allowDeclaredImports(manifest, included),
      importBuiltSiblings(included),
      ...(isProgram ? [includeLog, toAscii] : []),
    ],
    // Entries export what their sources do, and nothing else.
    preserveEntrySignatures: "strict",
    output: {
      dir: built,
      // Unlike `require`, an import of a module of node makes node load what its lazy exports stand for.
      ...(isProgram && { format: "cjs", strict: true }),
      minify: false,
      comments: !isProgram,
      sourcemap: hasSourceMaps,
      minifyInternalExports: false,
      chunkFileNames: ({ name }) => (namesInPlace.has(name) ? "[name].js" : "chunks/[name].js"),
      codeSplitting: { groups: included.length > 0 ? [inPlace] : [...sharedChunks, inPlace] },
    },
  });
  const chunks = output.filter((each) => each.type === "chunk");
  return {
    entries: chunks
      .filter(({ isEntry }) => isEntry)
      .map((chunk) => ({ path: chunk.name, names: chunk.exports, packages: importedPackages(chunk, chunks) })),
    files: chunks.flatMap(({ moduleIds }) => moduleIds),
  };
}

/** Returns the packages that are loaded with a file, by itself or by other files of the bundle. */
function importedPackages({ imports }: OutputChunk, chunks: readonly OutputChunk[]): string[] {
  const files = new Set(imports);
  for (const file of files) {
    for (const imported of chunks.find(({ fileName }) => fileName === file)?.imports ?? []) files.add(imported);
  }
  return [...new Set([...files].filter((file) => !chunks.some(({ fileName }) => fileName === file)).map(packageOf))];
}

const sharedChunks = [
  // Of the gateway, what every call needs. Only modules that run without node: the gateway over Fetch loads this file, too.
  {
    name: "calls",
    test: /\/gateway\/src\/(?:exchange|fetch|messages|protocols|serve)\/(?!.*(?:entry|index)\.ts$)/,
  },
];

/** Returns the path that a source file has in the folder of the bundle, without an ending. */
function builtPath(source: string): string {
  return source
    .replace(/^packages\//, "")
    .replace(/(^|\/)src\//, "$1")
    .replace(/\.ts$/, "");
}

function isPath(specifier: string): boolean {
  return /^[./]/.test(specifier);
}

/** Returns whether a package of this project is imported. */
function isSibling(specifier: string): boolean {
  return specifier.startsWith("@plantstore/");
}

function packageOf(specifier: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";
}

/** Refuses the import of a package that is not among the dependencies, and of a file of another package. */
function allowDeclaredImports({ dependencies, peerDependencies }: Manifest, included: readonly string[]): Plugin {
  const declared = new Set([...Object.keys({ ...dependencies, ...peerDependencies }), ...included]);
  return {
    name: "allow declared imports",
    resolveId(specifier, importer) {
      if (importer === undefined || importer.includes("/node_modules/")) return null;
      const isAllowed = isPath(specifier)
        ? packageFolderOf(resolve(dirname(importer), specifier)) === packageFolderOf(importer)
        : isBuiltin(specifier) || declared.has(packageOf(specifier));
      if (isAllowed) return null;
      throw new Error(`${importer} imports ${specifier}, which its package.json does not name`);
    },
  };
}

function packageFolderOf(file: string): string {
  return /^.*\/packages\/[^/]+/.exec(file)?.[0] ?? projectFolder;
}

/**
 * Imports what other packages of this project have built, instead of their entries for node: these would check the
 * installation once more, and wait for that at the top level, which no module may that CommonJS requires.
 */
function importBuiltSiblings(included: readonly string[]): Plugin {
  return {
    name: "import built siblings",
    resolveId(specifier) {
      const name = packageOf(specifier);
      if (!isSibling(specifier) || included.includes(name)) return null;
      const { exports } = readManifest(join(projectFolder, name.replace("@plantstore", "packages"), "package.json"));
      const source = exports[specifier.replace(name, ".")];
      if (source === undefined) throw new Error(`${specifier} is not exported by ${name}`);
      return { id: `${name}/lib/${builtPath(source.replace("./", ""))}.js`, external: true };
    },
  };
}

/** Includes what the log loads when it is opened, by a `require` of its own, which a bundle does not know as such. */
const includeLog: Plugin = {
  name: "include log",
  transform: (code, file) =>
    file.endsWith("/telemetry/src/logs/log.ts") ? code.replace(/^const require = .*$/m, "") : null,
};

/**
 * Writes ASCII alone: V8 keeps the text of a module in memory, and one character in a byte only if all need no more. Not
 * for characters within `String.raw`.
 */
const toAscii: Plugin = {
  name: "to ASCII",
  renderChunk: (code) =>
    code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
};

function looksBesideItself(file: string): boolean {
  return /new URL\([^;]*import\.meta\.url/.test(readFileSync(file, "utf8"));
}
