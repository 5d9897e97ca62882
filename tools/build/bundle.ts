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
    // Required by `includeDependenciesRecursively: false`. Entries export no more than their sources nevertheless:
    // test/package checks that.
    preserveEntrySignatures: "allow-extension",
    output: {
      dir: folder,
      minify: false,
      minifyInternalExports: false,
      chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
      codeSplitting: {
        // A module that looks for files beside itself keeps its place, so that the built one finds them too.
        groups: [{ debugName: "in place", name: (file) => (looksBesideItself(file) ? nameInSource(file) : null) }],
        includeDependenciesRecursively: false,
      },
    },
  });
}

/** Makes a package other than the gateway's import the gateway by its name, where the source imports it as a room. */
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

/** Refuses the import of a package that is not among the dependencies. */
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

/** Returns the path of a file of `src/`. */
export function sourceFile(name: string): string {
  return join(sourceFolder, name);
}
