import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { allowedEverywhere, allowedImports } from "./support/allowed-imports.ts";
import { allSourceFiles, sourceFolders, sourcePath } from "./support/source-files.ts";

const root = resolve(import.meta.dirname, "..");
const files = allSourceFiles();

/** Entry files in addition to module indexes and package exports. */
const entries: readonly string[] = [
  "plantstore/server/preload-storage.ts",
  "plantstore/stores/sqlite/storage-thread.ts",
];

/** Longest first, so that "protocols/rest/rules" is found before "protocols". */
const modules = [...new Set([...Object.entries(allowedImports).flat(2), ...allowedEverywhere])].toSorted(
  (a, b) => b.length - a.length,
);

function moduleOf(file: string): string | undefined {
  return modules.find((name) => file === name || file.startsWith(`${name}/`));
}

interface PackageJson {
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The package.json files, whose exports and commands are source files. */
const manifests: ReadonlyMap<string, PackageJson> = new Map(
  Object.entries(sourceFolders).map(([name, folder]) => [
    name,
    JSON.parse(readFileSync(join(root, dirname(folder), "package.json"), "utf8")),
  ]),
);

/** The source files that packages export. */
const exported: ReadonlySet<string> = new Set(
  [...manifests].flatMap(([name, { exports }]) => Object.values(exports).map((path) => path.replace("./src", name))),
);

/** Returns the file of a specifier: a path in the same package, or an export of another package. */
function fileOf(specifier: string, importer: string): string {
  if (!specifier.startsWith(".")) {
    const [, name = "", subpath = ""] = /^@protoport\/([^/]+)(.*)$/.exec(specifier) ?? [];
    const file = manifests.get(name)?.exports[`.${subpath}`];
    if (file === undefined) throw new Error(`${importer} imports ${specifier}, which is no export`);
    return file.replace("./src", name);
  }
  // The page in the browser imports the compiled files.
  return relative("/", resolve("/", dirname(importer), specifier.replace(/\.js$/, ".ts")));
}

function importsOf(file: string): string[] {
  const text = readFileSync(sourcePath(file), "utf8");
  const specifiers = [...text.matchAll(/(?:from|import|import\()\s*"((?:\.|@protoport\/)[^"]+)"/g)];
  return specifiers.map(([, specifier = ""]) => fileOf(specifier, file));
}

test("source files import files by path only from their own package", () => {
  for (const file of files) {
    const text = readFileSync(sourcePath(file), "utf8");
    const paths = [...text.matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)].map(([, path = ""]) => path);
    // A package.json is next to its source folder.
    const imported = paths.filter((path) => !path.endsWith("/package.json")).map((path) => fileOf(path, file));
    expect
      .soft(
        imported.filter((path) => !existsSync(sourcePath(path))),
        file,
      )
      .toEqual([]);
    expect.soft(new Set([...imported, file].map((path) => path.split("/")[0])).size, file).toBe(1);
  }
});

test.each(Object.keys(sourceFolders))(
  "%s imports the packages that its package.json declares, and no others",
  (name) => {
    const generated = `${name}/gen/`;
    const sources = existsSync(sourcePath(generated))
      ? readdirSync(sourcePath(generated), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
      : [];
    const imported = [...files, ...sources.map((file) => generated + file)]
      .filter((file) => file.startsWith(`${name}/`))
      .flatMap((file) => importsOf(file).map((path) => path.split("/")[0] ?? ""))
      .filter((other) => other !== name && !other.endsWith("package.json"));
    const declared = Object.keys(manifests.get(name)?.dependencies ?? {}).filter((each) =>
      each.startsWith("@protoport/"),
    );
    expect([...new Set(imported)].map((other) => `@protoport/${other}`).toSorted()).toEqual(declared.toSorted());
  },
);

/** The package lines in protoport/docs/explanation/architecture.md, from top to bottom. */
const layers = (
  /```text\n(.*?)```/s.exec(readFileSync(join(root, "protoport/docs/explanation/architecture.md"), "utf8"))?.[1] ?? ""
)
  .split("\n")
  .map((line) => line.split(/ +/));

test.each(Object.keys(sourceFolders))("%s depends only on packages in lower lines of architecture.md", (name) => {
  const line = layers.findIndex((names) => names.includes(name));
  expect(line).toBeGreaterThanOrEqual(0);
  const lower = new Set(layers.slice(line + 1).flat());
  const { dependencies = {} } = manifests.get(name) ?? {};
  const own = Object.keys(dependencies).flatMap((each) => /^@protoport\/(.*)$/.exec(each)?.[1] ?? []);
  expect(own.filter((other) => !lower.has(other))).toEqual([]);
});

test("source files import only entry points of allowed modules", () => {
  for (const file of files) {
    const from = moduleOf(file);
    const drawn = from === undefined ? undefined : allowedImports[from];
    const allowed = drawn && [...drawn, ...allowedEverywhere];
    expect.soft(allowed, `${file} lies in no module that is drawn`).toBeDefined();
    const wrong = importsOf(file).filter((imported) => {
      if (imported.endsWith("package.json")) return false;
      const to = moduleOf(imported);
      if (to === from) return false;
      const isEntry = imported === `${to}/index.ts` || entries.includes(imported) || exported.has(imported);
      return to === undefined || !allowed?.includes(to) || (!to.endsWith("/gen") && !isEntry);
    });
    expect.soft(wrong, file).toEqual([]);
  }
});

/** Returns the files that a file loads at run time, without type imports. */
function loadedBy(file: string): string[] {
  const text = readFileSync(sourcePath(file), "utf8");
  const specifiers = text.matchAll(/^(?:import|export) (?!type )[^;]*?from "((?:\.|@protoport\/)[^"]+)"/gm);
  return [...specifiers].map(([, specifier = ""]) => fileOf(specifier, file)).filter((path) => path.endsWith(".ts"));
}

/** Patterns of undocumented members, which Node.js may change in any release, and of flags that V8 calls unsafe. */
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

function privateAccessIn(text: string): string[] {
  return privateOfNode.flatMap((pattern) => text.match(pattern) ?? []);
}

test("source files use only documented members of Node.js", () => {
  for (const file of files) {
    expect.soft(privateAccessIn(readFileSync(sourcePath(file), "utf8")), file).toEqual([]);
  }
});

test.each([
  'const handle = Reflect.get(socket, "_handle");',
  'Reflect.set(\n  response,\n  "_sent100",\n  true,\n);',
  "socket._handle.useUserBuffer(memory);",
  "socket?._handle",
  'response["_sent100"] === true',
  "Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kBuffer')",
  "const { getOwnPropertySymbols } = Object;",
  "Reflect.ownKeys(socket)",
  'Reflect.apply(Reflect.get(Buffer.prototype, "utf8Slice"), bytes, [0, 1])',
  "bytes.latin1Write(text)",
  'process.binding("tcp_wrap")',
  'import { setFlagsFromString } from "node:v8";',
  'process.getBuiltinModule("node:v8").setFlagsFromString("--no-opt");',
])("%s is reported as access to Node.js internals", (line) => {
  expect(privateAccessIn(line)).not.toEqual([]);
});

test.each([
  "Reflect.get(message, field.localName)",
  'attributes["rpc.method"] === "_OTHER" ? "rpc.system.name" : "rpc.method"',
  'name.slice(0, -"_total".length)',
  "(flags, _operands, terminal) => run(flags, terminal)",
])("%s is not reported as access to Node.js internals", (line) => {
  expect(privateAccessIn(line)).toEqual([]);
});

test("imports have no cycles, including imports of types", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
    else if (!done.has(file)) for (const imported of importsOf(file)) visit(imported, [...way, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

/** Files that are loaded by their path: the page in the browser, and a thread. */
const loadedByPath = ["docs-page/files/page.ts", "plantstore/stores/sqlite/worker.ts"];

test("every source file is an entry point or imported by another file", () => {
  const entered = [...manifests].flatMap(([name, { exports, bin }]) =>
    [...Object.values(exports), ...Object.values(bin ?? {})]
      .filter((path) => path.endsWith(".ts"))
      .map((path) => path.replace("./src", name)),
  );
  const used = new Set([...entered, ...loadedByPath]);
  for (const file of used) {
    if (file.endsWith(".ts")) for (const imported of importsOf(file)) used.add(imported);
  }
  expect(files.filter((file) => !used.has(file))).toEqual([]);
});

test.each(["@connectrpc/connect-node", "@grpc/grpc-js"])(
  "%s is imported only by plantstore and grpc-handlers",
  (dependency) => {
    const others = files.filter((file) => !/^(?:plantstore|grpc-handlers)\//.test(file));
    const importing = others.filter((file) => readFileSync(sourcePath(file), "utf8").includes(`"${dependency}`));
    expect(importing).toEqual([]);
  },
);

test("source files do not compare protocols by name", () => {
  for (const file of files) {
    // A `Record<ProtocolName, …>` makes the compiler report each decision that a new protocol requires.
    const comparisons = /(?:rotocol(?:\.name|Name)? [!=]==|case) "(?:connect|grpc|grpc-web|mcp|rest)"|\.has\(protocol/g;
    expect.soft(readFileSync(sourcePath(file), "utf8").match(comparisons) ?? [], file).toEqual([]);
  }
});

const withSeparateEntry = /^(?:protobuf\/gen\/grpc|gateway\/(?:health|reflection)|mcp|validation)\//;
test.each([
  { entry: "gateway/index.ts", optional: withSeparateEntry },
  { entry: "gateway/fetch/entry.ts", optional: withSeparateEntry },
  { entry: "plantstore/server/index.ts", optional: /^mcp\// },
  { entry: "proxy/command/proxy-server.ts", optional: /^mcp\// },
])("$entry does not load optional modules of the gateway", ({ entry, optional }) => {
  const loaded = new Set([entry]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  expect(loaded.size).toBeGreaterThan(50);
  expect([...loaded].filter((file) => optional.test(file))).toEqual([]);
});

test("the Fetch gateway loads no Node.js modules", () => {
  const loaded = new Set(["gateway/fetch/entry.ts"]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  const ofNode = /^(?:import|export) (?!type )[^;]*?from "node:|getBuiltinModule|\bBuffer\.|\brequire\(/m;
  expect([...loaded].filter((file) => ofNode.test(readFileSync(sourcePath(file), "utf8")))).toEqual([]);
});

test("the SQLite storage thread loads no packages", () => {
  const loaded = new Set(["plantstore/stores/sqlite/worker.ts"]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  const ofPackage = /^(?:import|export) (?!type )[^;]*?from "(?!node:|\.)/m;
  expect([...loaded].filter((file) => ofPackage.test(readFileSync(sourcePath(file), "utf8")))).toEqual([]);
});

test.each(["pg", "node:http"])("the plantstore command loads %s only on demand", (name) => {
  const loaded = new Set(["plantstore/command/run-command-line.ts"]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  expect(loaded.size).toBeGreaterThan(200);
  const imports = new RegExp(`^(?:import|export) (?!type )[^;]*?from "${name}"`, "m");
  expect([...loaded].filter((file) => imports.test(readFileSync(sourcePath(file), "utf8")))).toEqual([]);
});

test("protoport/conformance imports only its own files and Node.js modules", () => {
  const folder = join(root, "protoport/conformance");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const specifiers = sources.flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(
      ([, specifier = ""]) => (specifier.startsWith(".") ? resolve(folder, dirname(file), specifier) : specifier),
    ),
  );
  expect(sources.length).toBeGreaterThan(10);
  expect(specifiers.filter((specifier) => !specifier.startsWith("node:") && !specifier.startsWith(folder))).toEqual([]);
});

/** The pages that list modules: the plant store's and each package's. */
const pages = [
  "protoport/docs/explanation/architecture.md",
  ...Object.keys(sourceFolders)
    .filter((name) => name !== "plantstore")
    .map((name) => `protoport/${name}/src/README.md`),
].map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }));

const listed = /^(\| `([a-z0-9/-]+)\/` \|.*\| )(\d+)(?= \|$)/gm;

function linesOf(name: string): number {
  const own = files.filter((file) => moduleOf(file) === name);
  return own.reduce((sum, file) => sum + readFileSync(sourcePath(file), "utf8").split("\n").length - 1, 0);
}

test("protoport/docs/explanation/architecture.md and the READMEs of the packages list every module", () => {
  const folders = modules.filter((name) => !name.endsWith("/gen") && !name.endsWith(".ts") && linesOf(name) > 0);
  const names = pages.flatMap(({ text }) => [...text.matchAll(listed)].map(([, , name = ""]) => name));
  expect(names.toSorted()).toEqual(folders.toSorted());
});

// `npm test -- test/architecture.test.ts -u` updates the numbers.
test.each(pages)("the line counts of modules in $page are accurate within 20 %", async ({ page, text }) => {
  const counted = text.replace(listed, (row, before: string, name: string, lines: string) => {
    const real = linesOf(name);
    return Math.abs(real / Number(lines) - 1) < 0.2 ? row : `${before}${Math.round(real / 10) * 10}`;
  });
  await expect(counted).toMatchFileSnapshot(join(root, page));
});

const named = [...(pages[0]?.text ?? "").matchAll(/`((?:[a-z0-9-]+\/)+(?:[a-z0-9-]+\.ts)?)`/g)]
  .map(([, file = ""]) => file)
  .filter((file) => !file.startsWith("plantstore/"));

test.each([...new Set(named)])("%s in protoport/docs/explanation/architecture.md exists", (file) => {
  expect([root, join(root, "protoport")].some((folder) => existsSync(join(folder, file)))).toBe(true);
});
