import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** The folder of the project. */
export const projectFolder: string = resolve(import.meta.dirname, "../..");

/** The folder of the source, whose layout the packages keep in `lib/`. */
export const sourceFolder: string = join(projectFolder, "src");

/** The name of the gateway's package. */
export const gatewayName = "@plantstore/gateway";

/** The file that is the whole interface of the gateway's package. */
export const gatewayEntry: string = join(sourceFolder, "gateway/index.ts");

/** The parts of a package.json that the build needs. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Reads a package.json of the checkout, in which exports and commands are source files. */
export function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8"));
}

// The members that only a checkout needs; `private` keeps the checkout itself from being published.
const ofCheckout: ReadonlySet<string> = new Set([
  "private",
  "workspaces",
  "scripts",
  "devDependencies",
  "allowScripts",
]);

/** Returns the package.json that is published: exports and commands are built files, and nothing is for development. */
export function publishedManifest(file: string, manifest: Manifest): object {
  const built = (source: string): string =>
    `./lib/${relative(sourceFolder, resolve(dirname(file), source)).replace(/\.ts$/, "")}`;
  const exported = Object.entries(manifest.exports).map(([subpath, source]) => [
    subpath,
    source.endsWith(".ts") ? { types: `${built(source)}.d.ts`, default: `${built(source)}.js` } : source,
  ]);
  const commands = Object.entries(manifest.bin ?? {}).map(([name, source]) => [name, `${built(source)}.js`]);
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([member]) => !ofCheckout.has(member))),
    exports: Object.fromEntries(exported),
    ...(commands.length > 0 && { bin: Object.fromEntries(commands) }),
  };
}
