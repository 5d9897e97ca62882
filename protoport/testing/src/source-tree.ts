import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { sourceFiles } from "./source-files.ts";

/** The members of a package.json that name source files. */
interface SourceManifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The modules that each module may import. */
export interface Fences {
  /** By module: the names of modules, and specifiers of packages that the tree does not contain. */
  readonly allowed: Readonly<Record<string, readonly string[]>>;
  /** The modules that every module may import. */
  readonly everywhere: readonly string[];
  /** Files that other modules may import in addition to each module's `index.ts` and what packages export. */
  readonly entries: readonly string[];
}

/** Members that Node.js does not document, which may change in any release, and flags that V8 calls unsafe. */
const privateOfNode: readonly RegExp[] = [
  // Underscored members: `socket._handle`, `socket["_handle"]`, `Reflect.get(socket, "_handle")`.
  /\._[A-Za-z]\w*/g,
  /\[\s*["'`]_\w+["'`]\s*\]/g,
  /\bReflect\.\w+\([^;]*?,\s*["'`]_\w+["'`]/g,
  // Members under symbols.
  /\bgetOwnPropertySymbols\b/g,
  /\bReflect\.ownKeys\b/g,
  // Internal Buffer.prototype methods and Node.js internals.
  /\b(?:ascii|base64|base64url|hex|latin1|ucs2|utf8)(?:Slice|Write)\b/g,
  /\bprocess\.binding\b/g,
  // According to its documentation, flags that are set after the VM has started may crash the process.
  /\bsetFlagsFromString\b/g,
];

/** Returns the undocumented members of Node.js that a source text uses. */
export const privateAccessIn = (text: string): string[] =>
  privateOfNode.flatMap((pattern) => text.match(pattern) ?? []);

/** The sources of packages, named by package and path in the source folder, such as `gateway/serve/call.ts`. */
export class SourceTree {
  readonly files: readonly string[];
  readonly manifests: ReadonlyMap<string, SourceManifest>;
  readonly #folders: Readonly<Record<string, string>>;
  readonly #scope: string;

  /** @param folders - absolute, by package @param scope - of the packages, such as `@shop` */
  constructor(folders: Readonly<Record<string, string>>, scope: string) {
    this.#folders = folders;
    this.#scope = `${scope}/`;
    this.files = Object.entries(folders).flatMap(([name, folder]) =>
      sourceFiles(folder).map((file) => `${name}/${file}`),
    );
    this.manifests = new Map(
      Object.entries(folders).map(([name, folder]) => [
        name,
        JSON.parse(readFileSync(join(dirname(folder), "package.json"), "utf8")),
      ]),
    );
  }

  pathOf(file: string): string {
    const [name = "", ...rest] = file.split("/");
    return join(this.#folders[name] ?? name, ...rest);
  }

  textOf(file: string): string {
    return readFileSync(this.pathOf(file), "utf8");
  }

  /** Returns the files that exports and commands of packages name. */
  publicFiles(): string[] {
    return [...this.manifests].flatMap(([name, { exports, bin }]) =>
      [...Object.values(exports), ...Object.values(bin ?? {})]
        .filter((path) => path.endsWith(".ts"))
        .map((path) => path.replace("./src", name)),
    );
  }

  /** Returns the file of a specifier, or the specifier of a package that the tree does not contain. */
  #fileOf(specifier: string, importer: string): string {
    // The page in the browser imports the compiled files.
    if (specifier.startsWith("."))
      return relative("/", resolve("/", dirname(importer), specifier.replace(/\.js$/, ".ts")));
    const [, name = "", subpath = ""] = /^([^/]+)(.*)$/.exec(specifier.slice(this.#scope.length)) ?? [];
    const manifest = this.manifests.get(name);
    if (manifest === undefined) return specifier;
    const file = manifest.exports[`.${subpath}`];
    if (file === undefined) throw new Error(`${importer} imports ${specifier}, which ${name} does not export`);
    return file.replace("./src", name);
  }

  /** Returns the files that a file imports, also only for types, and the specifiers of the scope's other packages. */
  importsOf(file: string): string[] {
    return this.#matches(file, /(?:from|import|import\()\s*"([^"]+)"/g);
  }

  /** Returns what a file loads at run time, without imports of types and without imports on demand. */
  loadedBy(file: string): string[] {
    return this.#matches(file, /^(?:import|export) (?!type )[^;]*?from "([^"]+)"/gm).filter((path) =>
      path.endsWith(".ts"),
    );
  }

  /** Returns a file and all files that it loads at run time, directly or through other files. */
  allLoadedBy(file: string): ReadonlySet<string> {
    const loaded = new Set([file]);
    for (const each of loaded) for (const other of this.loadedBy(each)) loaded.add(other);
    return loaded;
  }

  #matches(file: string, pattern: RegExp): string[] {
    return [...this.textOf(file).matchAll(pattern)]
      .map(([, specifier = ""]) => specifier)
      .filter((specifier) => specifier.startsWith(".") || specifier.startsWith(this.#scope))
      .map((specifier) => this.#fileOf(specifier, file));
  }

  /** Returns the imports by path of files that do not exist, or that are in another package. */
  wrongPaths(): string[] {
    return this.files.flatMap((file) => {
      const [name = ""] = file.split("/");
      const paths = [...this.textOf(file).matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)]
        .map(([, path = ""]) => path)
        // A package.json is next to its source folder.
        .filter((path) => !path.endsWith("/package.json"))
        .map((path) => this.#fileOf(path, file));
      return paths
        .filter((path) => !path.startsWith(`${name}/`) || !existsSync(this.pathOf(path)))
        .map((path) => `${file} -> ${path}`);
    });
  }

  /** Returns cycles of imports, also of types. Files of one part may import each other. By default, each is a part. */
  cycles(partOf: (file: string) => string = (file) => file): string[] {
    const imports = new Map<string, Set<string>>();
    for (const file of this.files.filter((name) => name.endsWith(".ts"))) {
      const part = partOf(file);
      const others = this.importsOf(file).map(partOf);
      // A file that imports itself is a cycle, and files of one part are not.
      imports.set(
        part,
        new Set([...(imports.get(part) ?? []), ...others.filter((other) => other !== part || part === file)]),
      );
    }
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (part: string, way: readonly string[]): void => {
      if (way.includes(part)) cycles.push([...way.slice(way.indexOf(part)), part].join(" → "));
      else if (!done.has(part)) for (const imported of imports.get(part) ?? []) visit(imported, [...way, part]);
      done.add(part);
    };
    for (const part of imports.keys()) visit(part, []);
    return cycles;
  }

  /** Returns the files that are not public, and that no public file imports. @param loaded - files loaded by path */
  unusedFiles(loaded: readonly string[]): string[] {
    const used = new Set([...this.publicFiles(), ...loaded]);
    for (const file of used) {
      if (file.endsWith(".ts") && !file.startsWith("@")) for (const path of this.importsOf(file)) used.add(path);
    }
    return this.files.filter((file) => !used.has(file));
  }

  /** Returns the imports that fences do not allow, and files that are in no module. */
  wrongImports({ allowed, everywhere, entries }: Fences): string[] {
    const exported = new Set(this.publicFiles());
    const names = moduleNames(allowed);
    return this.files.flatMap((file) => {
      const from = moduleOf(file, names);
      const mayImport = from === undefined ? undefined : allowed[from];
      if (mayImport === undefined) return [`${file} is in no module`];
      const wrong = this.importsOf(file).filter((imported) => {
        if (imported.endsWith("package.json")) return false;
        const to = imported.startsWith("@") ? imported : moduleOf(imported, names);
        if (to === from) return false;
        const isEntry =
          to === imported || imported === `${to}/index.ts` || entries.includes(imported) || exported.has(imported);
        const isAllowed = to !== undefined && (mayImport.includes(to) || everywhere.includes(to));
        return !isAllowed || (!to.endsWith("/gen") && !isEntry);
      });
      return wrong.map((imported) => `${file} -> ${imported}`);
    });
  }

  /** Returns the packages that import each entry of another package, by specifier without the scope, such as `shop/cart`. */
  importersOfEntries(): Readonly<Record<string, readonly string[]>> {
    const found = new Map<string, Set<string>>();
    for (const file of this.files) {
      const [importer = ""] = file.split("/");
      for (const [, specifier = ""] of this.textOf(file).matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)) {
        const entry = specifier.slice(this.#scope.length);
        if (!specifier.startsWith(this.#scope) || entry.split("/")[0] === importer) continue;
        found.set(entry, (found.get(entry) ?? new Set()).add(importer));
      }
    }
    return Object.fromEntries([...found].map(([entry, importers]) => [entry, [...importers].toSorted()]));
  }

  /** Returns the lines and files of a package, and its exports per 1,000 lines. */
  sizeOf(name: string): { readonly lines: number; readonly files: number; readonly exports: number } {
    const texts = this.files.filter((file) => file.startsWith(`${name}/`)).map((file) => this.textOf(file));
    const lines = texts.reduce((sum, text) => sum + text.split("\n").length - 1, 0);
    const declaration = /^export (?:async )?(?:abstract )?(?:function\*?|const|class|interface|type|let|enum) \w/gm;
    const exported = texts.reduce((sum, text) => sum + (text.match(declaration)?.length ?? 0), 0);
    return { lines, files: texts.length, exports: Math.round((1000 * exported) / lines) };
  }
}

/** Returns the names of all modules, the longest first, so that "protocols/rest/rules" is before "protocols". */
export function moduleNames(allowed: Fences["allowed"]): string[] {
  return [...new Set(Object.entries(allowed).flat(2))]
    .filter((name) => !name.startsWith("@"))
    .toSorted((a, b) => b.length - a.length);
}

/** Returns the first of the modules that contains a file. @param names - in the order of {@link moduleNames} */
const moduleOf = (file: string, names: readonly string[]): string | undefined =>
  names.find((name) => file === name || file.startsWith(`${name}/`));
