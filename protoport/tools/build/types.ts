import { dirname, join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";

// Declarations import each other with the extension `.ts`, like their sources.
const declarationsOfSources = {
  name: "declarations-of-sources",
  resolveId: {
    order: "pre",
    filter: { id: /^\..*\.ts$/ },
    handler: (specifier: string, importer = ""): string =>
      resolve(dirname(importer), specifier.replace(/(?:\.d)?\.ts$/, ".d.ts")),
  },
} as const;

/**
 * Rolls up the types in a package's entries. Each entry has a file, and shared types are in `types/`. Names that no
 * entry exports remain internal.
 *
 * @param declarations - the folder with the declarations that tsc has written for the package's folder
 * @param sources - the entries' source files, by their paths in `built` without an extension
 * @param built - the folder to which the types are written
 */
export async function bundleTypes(
  declarations: string,
  sources: ReadonlyMap<string, string>,
  built: string,
): Promise<void> {
  const bundle = await rolldown({
    input: Object.fromEntries(
      [...sources].map(([path, source]) => [path, join(declarations, source.replace(/\.ts$/, ".d.ts"))]),
    ),
    external: (specifier) => /^[^./]/.test(specifier),
    plugins: [declarationsOfSources, dts({ dtsInput: true, generator: "oxc", tsconfig: false })],
  });
  const names = { entryFileNames: "[name].d.ts", chunkFileNames: "types/[name].d.ts" };
  await bundle.write({ dir: built, minifyInternalExports: false, ...names });
  await bundle.close();
}
