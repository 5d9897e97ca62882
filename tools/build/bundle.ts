import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { build, type Plugin } from "rolldown";
import type { Entry } from "./entries.ts";
import type { Manifest } from "./manifest.ts";

/**
 * Bundles a package's own code into few files; the types are tsc's.
 *
 * Node needs a third of a millisecond to find and read a module, and there are two hundred of them: before the first
 * answer that is as much as everything else the package does. Dependencies stay imports, so that a user's
 * `ConnectError` is the package's. Nothing is minified: stack traces are for reading.
 *
 * @param source - the folder of the package
 * @param files - the source files that are entries, by their paths in that folder
 * @param built - the folder to write to
 * @param isShared - whether entries share chunks; otherwise there is one entry, in one file
 * @returns the entries, by their paths in that folder
 * @throws Error when the code imports a package that the manifest does not name, or a file of another package
 */
export async function bundle(
  manifest: Manifest,
  source: string,
  files: readonly string[],
  built: string,
  hasSourceMaps: boolean,
  isShared = true,
): Promise<readonly Entry[]> {
  const nameInSource = (file: string): string => relative(source, file).replace(/\.ts$/, "");
  const { output } = await build({
    cwd: source,
    input: Object.fromEntries(files.map((file) => [nameInSource(join(source, file)), join(source, file)])),
    platform: "node",
    // Whatever is not a path.
    external: /^[^./]/,
    plugins: [allowDeclaredImports(manifest, source)],
    // Entries export what their sources do, and nothing else.
    preserveEntrySignatures: "strict",
    output: {
      dir: built,
      minify: false,
      sourcemap: hasSourceMaps,
      minifyInternalExports: false,
      chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
      codeSplitting: isShared && {
        groups: [
          // Also used by entries that load nothing else of these: the next groups would take them along.
          { name: "negotiation", test: /\/protocols\/negotiation\.ts$/, priority: 1 },
          { name: "error-code", test: /\/errors\/error-code\.ts$/, priority: 1 },
          // Else what the command `check` needs of it would be a file more for everybody. Without
          // trusted-proxies/, which needs node: the gateway over Fetch loads this file too.
          {
            name: "calls",
            test: /\/gateway\/(?:binary|calls|fetch|json|made-code|protocols|rest)\/(?!entry)|\/carriers\/[^/]+$/,
          },
          // A module that looks for files beside itself keeps its place, so that the built one finds them too.
          { debugName: "in place", name: (file) => (looksBesideItself(file) ? nameInSource(file) : null) },
        ],
      },
    },
  });
  return output.flatMap((chunk) =>
    chunk.type === "chunk" && chunk.isEntry ? [{ path: chunk.name, names: chunk.exports }] : [],
  );
}

/** Refuses the import of a package that is not among the dependencies, and of a file that is not of this package. */
function allowDeclaredImports({ dependencies, peerDependencies }: Manifest, source: string): Plugin {
  const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
  return {
    name: "allow declared imports",
    resolveId(specifier, importer = source) {
      const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";
      const isAllowed = /^[./]/.test(specifier)
        ? !relative(source, resolve(dirname(importer), specifier)).startsWith("..")
        : isBuiltin(specifier) || declared.has(name);
      if (isAllowed) return null;
      throw new Error(`${importer} imports ${specifier}, which its package.json does not name`);
    },
  };
}

function looksBesideItself(file: string): boolean {
  return /new URL\([^;]*import\.meta\.url/.test(readFileSync(file, "utf8"));
}
