import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { build, type OutputChunk, type Plugin } from "rolldown";
import type { Entry } from "./entries.ts";
import { type Manifest, projectFolder, readPackage } from "./manifest.ts";

/** The options for {@link bundle}. */
export interface BundleOptions {
  readonly hasSourceMaps?: boolean;
  /** The packages that become part of the bundle. Other packages remain imports. */
  readonly included?: readonly string[];
  /** Whether code that several entries load is in a few files, not in a file for each set of entries. */
  readonly hasSharedChunks?: boolean;
  /** Whether the bundle is a program, whose entries export nothing. */
  readonly isProgram?: boolean;
}

/** The result of {@link bundle}. */
export interface Bundle {
  /** The bundle's entries. */
  readonly entries: readonly Entry[];
  /** The source files that the bundle contains. */
  readonly files: readonly string[];
}

/**
 * Bundles a package's code into a few files.
 *
 * Node takes a third of a millisecond to find and read a module. The gateway's two hundred modules would double the
 * time to the first response. Dependencies remain imports, so that a user's `ConnectError` is the same class as the
 * package's. The output is not minified, so that stack traces are readable.
 *
 * @param source - the folder that contains all source files
 * @param files - the source files that are entries, by their paths in `source`
 * @param built - the folder to which the bundle is written
 * @throws Error when the code imports a package that the manifest does not declare, or a file of another package
 */
export async function bundle(
  manifest: Manifest,
  source: string,
  files: readonly string[],
  built: string,
  { hasSourceMaps = false, hasSharedChunks = false, included = [], isProgram = false }: BundleOptions = {},
): Promise<Bundle> {
  const nameInSource = (file: string): string => builtPath(relative(source, file));
  const namesInPlace = new Set<string>();
  // A module that resolves files relative to itself keeps its path, so that the built module finds the same files.
  const inPlace = {
    debugName: "in place",
    name: (file: string) => {
      if (!resolvesRelativeFiles(file)) return null;
      namesInPlace.add(nameInSource(file));
      return nameInSource(file);
    },
  };
  const { output } = await build({
    cwd: source,
    input: Object.fromEntries(files.map((file) => [nameInSource(join(source, file)), join(source, file)])),
    platform: "node",
    // The imports of included packages are also included.
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
    // Entries have the same exports as their sources.
    preserveEntrySignatures: "strict",
    output: {
      dir: built,
      // `require` is used, because an `import` of a node module evaluates the module's lazy exports.
      ...(isProgram && { format: "cjs", strict: true }),
      minify: false,
      comments: !isProgram,
      sourcemap: hasSourceMaps,
      minifyInternalExports: false,
      chunkFileNames: ({ name }) => (namesInPlace.has(name) ? "[name].js" : "chunks/[name].js"),
      codeSplitting: { groups: [...(hasSharedChunks ? sharedChunks : []), inPlace] },
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

/** Returns the packages that a file in the bundle loads, directly or through other bundle files. */
function importedPackages({ imports }: OutputChunk, chunks: readonly OutputChunk[]): string[] {
  const files = new Set(imports);
  for (const file of files) {
    for (const imported of chunks.find(({ fileName }) => fileName === file)?.imports ?? []) files.add(imported);
  }
  return [...new Set([...files].filter((file) => !chunks.some(({ fileName }) => fileName === file)).map(packageOf))];
}

/** The gateway's chunks. All chunks run without node, because the gateway over Fetch loads them too. */
const sharedChunks = [
  // The modules for an HTTP engine. They do not depend on RPC.
  { name: "http", test: /\/gateway\/src\/http\/(?:exchange\/|(?!node-entry)[a-z-]+\.ts$)/ },
  // The modules that every call needs.
  {
    name: "calls",
    test: /\/gateway\/src\/(?:fetch|protobuf|protocols(?!\/compression\/)|serve)\/(?!gen\/|.*(?:entry|index)\.ts$)/,
  },
];

/** Returns a source file's path in the bundle's folder, without its extension. */
function builtPath(source: string): string {
  return source
    .replace(/^(?:protoport|\.\.)\//, "")
    .replace(/(^|\/)src\//, "$1")
    .replace(/\.ts$/, "");
}

function isPath(specifier: string): boolean {
  return /^[./]/.test(specifier);
}

/** Returns whether a specifier names one of this project's packages. */
function isSibling(specifier: string): boolean {
  return specifier.startsWith("@protoport/");
}

function packageOf(specifier: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";
}

/** Rejects imports from packages that are not declared as dependencies, and imports of other packages' files. */
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
      throw new Error(`${importer} imports ${specifier}, which its package.json does not declare`);
    },
  };
}

function packageFolderOf(file: string): string {
  return /^.*\/protoport\/[^/]+/.exec(file)?.[0] ?? projectFolder;
}

/**
 * Imports the built files of this project's other packages instead of their entries for node. The entries would check
 * the installation again with a top-level await, and `require` cannot load a module with a top-level await.
 */
function importBuiltSiblings(included: readonly string[]): Plugin {
  return {
    name: "import built siblings",
    resolveId(specifier) {
      if (!isSibling(specifier) || included.includes(packageOf(specifier))) return null;
      const name = packageOf(specifier);
      const source = readPackage(name.replace("@protoport/", "")).exports[specifier.replace(name, ".")];
      if (source === undefined) throw new Error(`${specifier} is not exported by ${name}`);
      return { id: `${name}/lib/${builtPath(source.replace(/^\.\//, ""))}.js`, external: true };
    },
  };
}

/** Includes the modules that the log loads lazily by a `require` from `createRequire`, which the bundler cannot see. */
const includeLog: Plugin = {
  name: "include log",
  transform: (code, file) =>
    file.endsWith("/telemetry/src/logs/log.ts") ? code.replace(/^const require = .*$/m, "") : null,
};

/**
 * Escapes all characters that are not ASCII. V8 keeps a module's source in memory, and uses one byte per character only
 * if no character needs two bytes. The plugin does not support characters outside ASCII in `String.raw`.
 */
const toAscii: Plugin = {
  name: "to ASCII",
  renderChunk: (code) =>
    code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
};

function resolvesRelativeFiles(file: string): boolean {
  return /new URL\([^;]*import\.meta\.url/.test(readFileSync(file, "utf8"));
}
