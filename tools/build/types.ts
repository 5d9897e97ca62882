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
 * Rolls up the types of a package's entries: a file for each entry, and shared types in `types/`. Names that no entry
 * exports remain internal.
 *
 * @param declarations - the folder of the package's declarations that tsc has written
 * @param paths - the entries, by their paths in that folder without an extension
 * @param built - the folder to write to
 */
export async function bundleTypes(declarations: string, paths: readonly string[], built: string): Promise<void> {
  const bundle = await rolldown({
    input: Object.fromEntries(paths.map((path) => [path, join(declarations, `${path}.d.ts`)])),
    external: /^[^./]/,
    plugins: [declarationsOfSources, dts({ dtsInput: true, generator: "oxc", tsconfig: false })],
  });
  const names = { entryFileNames: "[name].d.ts", chunkFileNames: "types/[name].d.ts" };
  await bundle.write({ dir: built, minifyInternalExports: false, ...names });
  await bundle.close();
}
