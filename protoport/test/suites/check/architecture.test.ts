import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { assignedConstantsIn, moduleVariablesIn } from "../../../testing/src/module-state.ts";
import { moduleNames, privateAccessIn } from "../../../testing/src/source-tree.ts";
import { allowedEverywhere, allowedImports, entryImporters } from "../../support/allowed-imports.ts";
import { protoportFolder, protoportPackageNames, protoportTree as tree } from "../../support/source-files.ts";

const architecture = "docs/explanation/architecture.md";

test("source files import files by path only from their own package", () => {
  expect(tree.files.length).toBeGreaterThan(400);
  expect(tree.wrongPaths()).toEqual([]);
});

test.each(protoportPackageNames)("%s imports the packages that its package.json declares, and no others", (name) => {
  const generated = tree.pathOf(`${name}/gen`);
  const sources = existsSync(generated)
    ? readdirSync(generated, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    : [];
  const imported = [...tree.files, ...sources.map((file) => `${name}/gen/${file}`)]
    .filter((file) => file.startsWith(`${name}/`))
    .flatMap((file) => tree.importsOf(file).map((path) => path.split("/")[0] ?? ""))
    .filter((other) => other !== name && !other.endsWith("package.json"));
  const dependencies = Object.keys(tree.manifests.get(name)?.dependencies ?? {});
  const declared = dependencies.filter((each) => each.startsWith("@protoport/"));
  expect([...new Set(imported)].map((other) => `@protoport/${other}`).toSorted()).toEqual(declared.toSorted());
});

const page = readFileSync(join(protoportFolder, architecture), "utf8");

/** The lines of package names in architecture.md, from top to bottom. */
const layers = (/```text\n(.*?)```/s.exec(page)?.[1] ?? "").split("\n").map((line) => line.split(/ +/));

test.each(protoportPackageNames)("%s depends only on packages in lower lines of architecture.md", (name) => {
  const line = layers.findIndex((names) => names.includes(name));
  expect(line).toBeGreaterThanOrEqual(0);
  const lower = new Set(layers.slice(line + 1).flat());
  const { dependencies = {} } = tree.manifests.get(name) ?? {};
  const own = Object.keys(dependencies).flatMap((each) => /^@protoport\/(.*)$/.exec(each)?.[1] ?? []);
  expect(own.filter((other) => !lower.has(other))).toEqual([]);
});

test("source files import only entry points of allowed modules", () => {
  const fences = { allowed: allowedImports, everywhere: allowedEverywhere, entries: ["gateway/http/node-entry.ts"] };
  expect(tree.wrongImports(fences)).toEqual([]);
});

test("packages import only the listed entries of other packages", () =>
  expect(tree.importersOfEntries()).toEqual(entryImporters));

test("source files use only documented members of Node.js", () => {
  for (const file of tree.files) expect.soft(privateAccessIn(tree.textOf(file)), file).toEqual([]);
});

const moduleVariables: Readonly<Record<string, readonly string[]>> = {
  "gateway/http/exchange/buffered-body.ts": ["sharedBlock", "sharedBytes"],
  "gateway/engine/http-server.ts": ["dateSecond", "date"],
  "grpc-handlers/calls/write-response.ts": ["keptWriter"],
  "gateway/protobuf/messages/codegen.ts": ["isAllowed"],
  "gateway/protocols/compression/decode-pieces.ts": ["reservedBytes"],
  "telemetry/logs/plain-lines.ts": ["timeMs", "timeText"],
};

/** Module constants to whose members a function assigns, by file. Caches whose comments state their size. */
const assignedConstants: Readonly<Record<string, readonly string[]>> = {
  "gateway/protobuf/messages/binary/binary-reader.ts": ["shortTexts"],
  "gateway/engine/http1/response-head.ts": ["statusLines"],
};

test("source files have no state in module variables", () => {
  for (const file of tree.files) {
    const text = tree.textOf(file);
    expect.soft(moduleVariablesIn(text), file).toEqual(moduleVariables[file] ?? []);
    expect.soft(assignedConstantsIn(text), file).toEqual(assignedConstants[file] ?? []);
  }
});

/** Source files that read with node:fs functions, which wait for a named pipe's writer. */
const readers: Readonly<Record<string, string>> = {
  "command-line/files/regular-file.ts": "opens files without waiting",
  "docs-page/docs-page.ts": "reads a file of the package",
  "docs-page/page-script.ts": "reads a file of the package",
  "proxy/definitions/definition.ts": "checks the output of buf from a pipe too, and handles no signals",
};

test("only the listed source files read files with node:fs", () => {
  const reads = /^import [^;]*\b(?:readFile|readFileSync|createReadStream)\b[^;]*? from "node:fs/m;
  const found = tree.files.filter((file) => tree.textOf(file).search(reads) >= 0);
  expect(found.toSorted()).toEqual(Object.keys(readers).toSorted());
});

test("imports have no cycles, including imports of types", () => expect(tree.cycles()).toEqual([]));

const protocolFolderOf = (file: string): string => /^(gateway\/protocols\/.+)\/[^/]+$/.exec(file)?.[1] ?? file;

test("no folder of gateway/protocols imports another one that imports it", () =>
  expect(tree.cycles(protocolFolderOf)).toEqual([]));

test("every source file is an entry point or imported by another file", () => {
  // The script of the docs page runs in the browser.
  expect(tree.unusedFiles(["docs-page/files/page.ts"])).toEqual([]);
});

test.each(["@connectrpc/connect-node", "@grpc/grpc-js"])("%s is imported only by grpc-handlers", (dependency) => {
  const others = tree.files.filter((file) => !file.startsWith("grpc-handlers/"));
  expect(others.filter((file) => tree.textOf(file).includes(`"${dependency}`))).toEqual([]);
});

test("source files do not compare protocols by name", () => {
  for (const file of tree.files) {
    // A `Record<ProtocolName, …>` makes the compiler report each decision that a new protocol requires.
    const comparisons = /(?:rotocol(?:\.name|Name)? [!=]==|case) "(?:connect|grpc|grpc-web|mcp|rest)"|\.has\(protocol/g;
    expect.soft(tree.textOf(file).match(comparisons) ?? [], file).toEqual([]);
  }
});

const withSeparateEntry = /^gateway\/(?:protobuf\/gen\/grpc|health|reflection|mcp|validation)\//;
test.each([
  { entry: "gateway/index.ts", optional: withSeparateEntry },
  { entry: "gateway/fetch/entry.ts", optional: withSeparateEntry },
  { entry: "proxy/command/proxy-server.ts", optional: /^gateway\/mcp\// },
])("$entry does not load optional modules of the gateway", ({ entry, optional }) => {
  const loaded = tree.allLoadedBy(entry);
  expect(loaded.size).toBeGreaterThan(50);
  expect([...loaded].filter((file) => optional.test(file))).toEqual([]);
});

test("proxy/definitions does not import other modules of the proxy, nor modules that open sockets", () => {
  const found = new Set(tree.files.filter((file) => file.startsWith("proxy/definitions/")));
  expect(found.size).toBeGreaterThan(20);
  for (const file of found) if (file.startsWith("proxy/")) for (const next of tree.importsOf(file)) found.add(next);
  expect([...found].filter((file) => /^proxy\/(?!definitions\/)|^gateway\/engine\//.test(file))).toEqual([]);
  expect([...found].filter((file) => /"node:(?:http2?|https|net|tls|dgram)"/.test(tree.textOf(file)))).toEqual([]);
});

const ofNode = /^(?:import|export) (?!type )[^;]*?from "node:|getBuiltinModule|\bBuffer\.|\brequire\(/m;

test.each(["gateway/fetch/entry.ts", "rest-client/index.ts"])("%s loads no Node.js modules", (entry) => {
  const loaded = [...tree.allLoadedBy(entry)];
  expect(loaded.length).toBeGreaterThan(50);
  expect(loaded.filter((file) => ofNode.test(tree.textOf(file)))).toEqual([]);
});

test("conformance imports only its own files and Node.js modules", () => {
  const folder = join(protoportFolder, "conformance");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const specifiers = sources.flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(
      ([, specifier = ""]) => (specifier.startsWith(".") ? resolve(folder, dirname(file), specifier) : specifier),
    ),
  );
  expect(sources.length).toBeGreaterThan(10);
  expect(specifiers.filter((specifier) => !specifier.startsWith("node:") && !specifier.startsWith(folder))).toEqual([]);
});

/** The most lines, files and exports per 1,000 lines. A commit that raises a limit gives the reason in its body. */
const limits = [
  { name: "auth", lines: 3430, files: 36, exports: 34 },
  { name: "command-line", lines: 870, files: 13, exports: 68 },
  { name: "docs-page", lines: 2185, files: 25, exports: 34 },
  { name: "frameworks", lines: 1186, files: 8, exports: 34 },
  { name: "gateway", lines: 34897, files: 258, exports: 30 },
  { name: "grpc-handlers", lines: 2647, files: 23, exports: 21 },
  { name: "proxy", lines: 12365, files: 99, exports: 25 },
  { name: "rest-client", lines: 1890, files: 15, exports: 20 },
  { name: "telemetry", lines: 2255, files: 25, exports: 39 },
];

test.each(limits)("the sources of $name stay within $lines lines, $files files and $exports exports", (limit) => {
  const { lines, files, exports } = tree.sizeOf(limit.name);
  expect(lines).toBeLessThanOrEqual(limit.lines);
  expect(files).toBeLessThanOrEqual(limit.files);
  expect(exports).toBeLessThanOrEqual(limit.exports);
});

test("the proxy without definitions stays within 9,793 lines", () => {
  const [proxy, definitions] = ["proxy", "proxy/definitions"].map((name) => tree.sizeOf(name).lines);
  expect((proxy ?? 0) - (definitions ?? 0)).toBeLessThanOrEqual(9_793);
});

test("every package has size limits", () => expect(limits.map(({ name }) => name)).toEqual(protoportPackageNames));

test("the entry of every module begins with what the module is for", () => {
  const entries = moduleNames(allowedImports).map((name) => `${name}/index.ts`);
  const found = entries.filter((entry) => tree.files.includes(entry));
  expect(found.length).toBeGreaterThan(30);
  expect(found.filter((entry) => !tree.textOf(entry).startsWith("/**"))).toEqual([]);
});

const named = [...page.matchAll(/`((?:[a-z0-9-]+\/)+(?:[a-z0-9-]+\.ts)?)`/g)].map(([, file = ""]) => file);

test.each([...new Set(named)])("%s in architecture.md exists", (file) => {
  expect(existsSync(join(protoportFolder, file)) || existsSync(tree.pathOf(file))).toBe(true);
});
