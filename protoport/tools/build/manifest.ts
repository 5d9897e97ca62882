import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The project's folder. */
export const projectFolder: string = resolve(import.meta.dirname, "../../..");

/** The members of a package.json that the build reads. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  /**
   * The repository's URL, which only the project's package.json has. Other URLs are derived from the repository's URL.
   */
  readonly repository?: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  /** The optional peers. */
  readonly peerDependenciesMeta?: Readonly<Record<string, object>>;
}

/** Protoport's published packages, by the names of their folders in protoport/ and dist/. Dependencies come first. */
export const protoportPackages: readonly string[] = [
  "gateway",
  "command-line",
  "docs-page",
  "rest-client",
  "auth",
  "telemetry",
  "frameworks",
  "grpc-handlers",
  "proxy",
  "conformance",
];

/** Reads a package's manifest in protoport/ by the folder name. */
export function readPackage(name: string): Manifest {
  return readManifest(join(projectFolder, "protoport", name, "package.json"));
}

/** A package.json's members that concern only the checkout and are not published. */
const unpublished = new Set(["private", "workspaces", "scripts", "devDependencies", "allowScripts"]);

/** Reads a package.json in the checkout, whose exports and commands are source files. */
export function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Returns the source files among exports or commands, by their paths in the package without extensions. */
export function sourcesOf(files: Readonly<Record<string, string>> = {}): ReadonlyMap<string, string> {
  return new Map(
    Object.values(files)
      .flatMap((file) => [[pathOf(file), file] as const])
      .filter(isSource),
  );
}

function isSource(entry: readonly [string | undefined, string]): entry is [string, string] {
  return entry[0] !== undefined;
}

/** Returns a source file's path in the published package. */
function pathOf(source: string): string | undefined {
  return /^\.\/src\/(.*)\.ts$/.exec(source)?.[1];
}

/**
 * Returns an export's conditions. Node loads a file that first checks for peers. Any other runtime loads the code
 * directly.
 */
function builtExport(source: string): object | string {
  const path = pathOf(source);
  if (path === undefined) return source;
  return {
    // Bundlers load the code directly, because they can remove only unused code that they see.
    module: `./lib/${path}.js`,
    require: { types: `./node/${path}.d.ts`, default: `./node/${path}.js` },
    types: `./lib/${path}.d.ts`,
    node: `./node/${path}.mjs`,
    default: `./lib/${path}.js`,
  };
}

/** Returns the members for tools that do not support `exports`, such as TypeScript with `node10`. */
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

/** Returns a package's URLs, which are derived from the repository's URL. Returns no URLs without a repository. */
export function publishedAddresses(repository: string | undefined, directory: string): object {
  if (repository === undefined) return {};
  return {
    homepage: `${repository}#readme`,
    bugs: `${repository}/issues`,
    repository: { type: "git", url: `git+${repository}.git`, ...(directory !== "." && { directory }) },
  };
}

/** The build options that affect a published package.json. */
export interface Publishing {
  /** The folder from which commands are started. */
  readonly commandFolder: string;
  /** Folders in `lib/` that cannot be imported. */
  readonly unexported: readonly string[];
}

/**
 * Returns the package.json to publish. Exports and commands are built files, and members for the checkout are removed.
 *
 * @param folder - the package folder in the checkout
 */
export function publishedManifest(
  manifest: Manifest,
  folder: string,
  { commandFolder, unexported }: Publishing,
): object {
  const exported = Object.entries(manifest.exports).map(([subpath, source]) => [subpath, builtExport(source)]);
  // The path has no "./", which npm would remove with a warning.
  const commands = Object.entries(manifest.bin ?? {}).map(([name, source]) => [
    name,
    `${commandFolder}/${pathOf(source)}.js`,
  ]);
  // The exports for the project's other packages, which import the built code directly.
  const code = [["./lib/*", "./lib/*"], ...unexported.map((name) => [`./lib/${name}/*`, null])];
  return {
    ...publishedMembers(manifest, folder),
    dependencies: manifest.dependencies ?? {},
    exports: Object.fromEntries([...exported, ...code]),
    ...membersBeforeExports(manifest.exports),
    ...(commands.length > 0 && { bin: Object.fromEntries(commands) }),
  };
}

/** Returns a package.json's members that are published unchanged, and the package's URLs. */
export function publishedMembers(manifest: Manifest, folder: string): object {
  const { repository } = readManifest(join(projectFolder, "package.json"));
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([member]) => !unpublished.has(member))),
    ...publishedAddresses(repository, folder),
  };
}
