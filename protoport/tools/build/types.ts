import { dirname, join, resolve } from "node:path";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { gatewayParts, publishedSpecifier, readPackage } from "./manifest.ts";

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

/** Returns whether an import refers to a package that the gateway contains. */
function isOfPart(specifier: string): boolean {
  return publishedSpecifier(specifier) !== specifier;
}

/**
 * Rolls up the types in a package's entries. Each entry has a file, and shared types are in `types/`. Names that no
 * entry exports remain internal.
 *
 * @param declarations - the folder with the declarations that tsc has written for the package's folder
 * @param sources - the entries' source files, by their paths in `built` without an extension
 * @param built - the folder to which the types are written
 * @param included - the packages whose types are included
 */
export async function bundleTypes(
  declarations: string,
  sources: ReadonlyMap<string, string>,
  built: string,
  included: readonly string[],
): Promise<void> {
  // Other packages import the types in the gateway's parts from the gateway.
  const declarationsOfParts = {
    name: "declarations-of-parts",
    resolveId: {
      order: "pre",
      filter: { id: /^@protoport\// },
      handler: (specifier: string): string | { readonly id: string; readonly external: true } => {
        const part = gatewayParts.find((each) => included.includes(each) && `${specifier}/`.startsWith(`${each}/`));
        if (part === undefined) return { id: publishedSpecifier(specifier), external: true };
        const name = part.replace("@protoport/", "");
        const source = readPackage(name).exports[specifier.replace(part, ".")] ?? "";
        return join(declarations, "..", name, source.replace(/\.ts$/, ".d.ts"));
      },
    },
  } as const;
  const bundle = await rolldown({
    input: Object.fromEntries(
      [...sources].map(([path, source]) => [path, join(declarations, source.replace(/\.ts$/, ".d.ts"))]),
    ),
    external: (specifier) => /^[^./]/.test(specifier) && !isOfPart(specifier),
    plugins: [declarationsOfParts, declarationsOfSources, dts({ dtsInput: true, generator: "oxc", tsconfig: false })],
  });
  const names = { entryFileNames: "[name].d.ts", chunkFileNames: "types/[name].d.ts" };
  await bundle.write({ dir: built, minifyInternalExports: false, ...names });
  await bundle.close();
}
