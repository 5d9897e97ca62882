import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The folder of the project. */
export const projectFolder: string = resolve(import.meta.dirname, "../..");

/** The folder of the packages' folders, each of which is laid out in `lib/` as it is here. */
export const sourceFolder: string = join(projectFolder, "src");

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

/** Returns the source files that a package is entered by, as its package.json has them. */
export function entriesOf({ exports, bin }: Manifest): string[] {
  return [...Object.values(exports), ...Object.values(bin ?? {})].filter((file) => file.endsWith(".ts"));
}

/** Returns where a source file of a package is built, without its ending. */
function builtPath(source: string): string {
  return `./lib/${source.slice("./".length).replace(/\.ts$/, "")}`;
}

/** Returns the package.json that is published: exports and commands are built files, and nothing is private. */
export function publishedManifest(manifest: Manifest): object {
  const exported = Object.entries(manifest.exports).map(([subpath, source]) => [
    subpath,
    source.endsWith(".ts") ? { types: `${builtPath(source)}.d.ts`, default: `${builtPath(source)}.js` } : source,
  ]);
  const commands = Object.entries(manifest.bin ?? {}).map(([name, source]) => [name, `${builtPath(source)}.js`]);
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([member]) => member !== "private")),
    exports: Object.fromEntries(exported),
    ...(commands.length > 0 && { bin: Object.fromEntries(commands) }),
  };
}
