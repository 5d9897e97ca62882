import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { build, type Plugin } from "rolldown";
import { gatewayEntry, gatewayName, type Manifest, sourceFolder } from "./manifest.ts";

/**
 * Bundles a package's own code into few files; the types are tsc's.
 *
 * Node needs a third of a millisecond to find and read a module, and there are two hundred of them: before the first
 * answer that is as much as everything else the package does. Dependencies stay imports, so that a user's
 * `ConnectError` is the package's. Nothing is minified: stack traces are for reading.
 *
 * @param files - the source files that are entries
 * @throws Error when the code imports a package that the manifest does not name
 */
export async function bundle(manifest: Manifest, files: readonly string[], folder: string): Promise<void> {
  await build({
    cwd: sourceFolder,
    input: Object.fromEntries(files.map((file) => [nameInSource(file), file])),
    platform: "node",
    // Whatever is not a path.
    external: /^[^./]/,
    plugins: [importGatewayByName(files), allowDeclaredPackages(manifest)],
    // Asked for by `includeDependenciesRecursively: false`. No entry exports more for it than its source, as
    // test/package sees.
    preserveEntrySignatures: "allow-extension",
    output: {
      dir: folder,
      minify: false,
      minifyInternalExports: false,
      chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
      codeSplitting: {
        // A module that looks for a file beside it keeps its place, so that it finds it built as it does from source.
        groups: [{ debugName: "in place", name: (file) => (looksBesideItself(file) ? nameInSource(file) : null) }],
        includeDependenciesRecursively: false,
      },
    },
  });
}

/** The source imports the gateway as a room; a package that is not the gateway imports it as a package. */
function importGatewayByName(entries: readonly string[]): Plugin {
  return {
    name: "import the gateway by its name",
    resolveId(specifier, importer) {
      if (importer === undefined || !specifier.startsWith(".") || entries.includes(gatewayEntry)) return null;
      const isGateway = resolve(dirname(importer), specifier) === gatewayEntry;
      return isGateway ? { id: gatewayName, external: true } : null;
    },
  };
}

/** Whatever is not a path stays an import, and must be among the dependencies that are installed with the package. */
function allowDeclaredPackages({ dependencies, peerDependencies }: Manifest): Plugin {
  const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
  return {
    name: "allow declared packages",
    resolveId(specifier, importer) {
      if (/^[./]/.test(specifier)) return null;
      const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";
      if (isBuiltin(specifier) || declared.has(name)) return null;
      throw new Error(`${importer ?? ""} imports ${specifier}, which its package.json does not name`);
    },
  };
}

function looksBesideItself(file: string): boolean {
  return readFileSync(file, "utf8").includes("import.meta.");
}

function nameInSource(file: string): string {
  return relative(sourceFolder, file).replace(/\.ts$/, "");
}

/** Returns a file of `src/` by its name there. */
export function sourceFile(name: string): string {
  return join(sourceFolder, name);
}
