import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The folder of the project. */
export const projectFolder: string = resolve(import.meta.dirname, "../..");

/** The parts of a package.json that the build needs. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  /** Of the project alone: the address of its repository, from which all others follow. */
  readonly repository?: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  /** The optional ones. */
  readonly peerDependenciesMeta?: Readonly<Record<string, object>>;
}

/** The folders of the packages in the checkout, by the names of their folders in dist/. Each follows those that it needs. */
export const packageFolders: ReadonlyMap<string, string> = new Map([
  ...["gateway", "http-engine", "docs-page", "rest-client", "auth", "telemetry", "proxy", "conformance"].map(
    (name) => [name, `packages/${name}`] as const,
  ),
  ["plantstore", "."],
]);

/** The members of a package.json that are about the checkout, and are not published. */
const unpublished = new Set(["private", "workspaces", "scripts", "devDependencies", "allowScripts"]);

/** Reads a package.json of the checkout, in which exports and commands are source files. */
export function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Returns the paths in the package, without endings, of those exports or commands that are code. */
export function pathsOf(files: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.values(files).flatMap((file) => pathOf(file) ?? []);
}

function pathOf(source: string): string | undefined {
  return /^\.\/src\/(.*)\.ts$/.exec(source)?.[1];
}

/** Returns what a subpath leads to: in node to a file that first checks what is installed, else to the code itself. */
function builtExport(source: string): object | string {
  const path = pathOf(source);
  if (path === undefined) return source;
  return {
    // For bundlers, which leave out what is not used when they see the code itself.
    module: `./lib/${path}.js`,
    require: { types: `./node/${path}.d.ts`, default: `./node/${path}.js` },
    types: `./lib/${path}.d.ts`,
    node: `./node/${path}.mjs`,
    default: `./lib/${path}.js`,
  };
}

/** Returns the members for tools that know no `exports`, such as TypeScript with `node10`. */
function membersBeforeExports(exports: Manifest["exports"]): object {
  const paths = Object.entries(exports).flatMap(([subpath, source]) => {
    const path = pathOf(source);
    return path === undefined ? [] : [{ subpath: subpath.replace("./", ""), types: `./node/${path}.d.ts`, path }];
  });
  const main = paths.find(({ subpath }) => subpath === ".");
  const others = paths.filter((path) => path !== main).map(({ subpath, types }) => [subpath, [types]]);
  return {
    ...(main !== undefined && { main: `./node/${main.path}.js`, types: main.types }),
    typesVersions: { "*": Object.fromEntries(others) },
  };
}

/** Returns where a package is found, if the project has an address: one value, in its own package.json. */
export function publishedAddresses(repository: string | undefined, directory: string): object {
  if (repository === undefined) return {};
  return {
    homepage: `${repository}#readme`,
    bugs: `${repository}/issues`,
    repository: { type: "git", url: `git+${repository}.git`, ...(directory !== "." && { directory }) },
  };
}

/** What a published package.json depends on, apart from that of the checkout. */
export interface Publishing {
  /** The packages that its code includes, which are not installed with it. */
  readonly included: readonly string[];
  /** The folder that commands are started from. */
  readonly commandFolder: string;
  /** Folders of `lib/` that nobody imports from. */
  readonly unexported: readonly string[];
}

/**
 * Returns the package.json that is published: exports and commands are built files, and nothing is about the checkout.
 *
 * @param folder - the folder of the package in the checkout
 */
export function publishedManifest(
  manifest: Manifest,
  folder: string,
  { included, commandFolder, unexported }: Publishing,
): object {
  const dependencies = Object.entries(manifest.dependencies ?? {}).filter(([name]) => !included.includes(name));
  const exported = Object.entries(manifest.exports).map(([subpath, source]) => [subpath, builtExport(source)]);
  // Without "./", which npm would remove, with a warning.
  const commands = Object.entries(manifest.bin ?? {}).map(([name, source]) => [
    name,
    `${commandFolder}/${pathOf(source)}.js`,
  ]);
  // For the other packages, which import the built code itself.
  const code = [["./lib/*", "./lib/*"], ...unexported.map((name) => [`./lib/${name}/*`, null])];
  return {
    ...publishedMembers(manifest, folder),
    dependencies: Object.fromEntries(dependencies),
    exports: Object.fromEntries([...exported, ...code]),
    ...membersBeforeExports(manifest.exports),
    ...(commands.length > 0 && { bin: Object.fromEntries(commands) }),
  };
}

/** Returns the members of a package.json that are published as they are, and where the package is found. */
export function publishedMembers(manifest: Manifest, folder: string): object {
  const { repository } = readManifest(join(projectFolder, "package.json"));
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([member]) => !unpublished.has(member))),
    ...publishedAddresses(repository, folder),
  };
}
