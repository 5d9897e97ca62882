import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { allSourceFiles, sourceFolders, sourcePath } from "./support/source-files.ts";

const root = resolve(import.meta.dirname, "..");
const files = allSourceFiles();

const inGateway = (...modules: readonly string[]): string[] => modules.map((name) => `gateway/${name}`);
const inHandlers = (...modules: readonly string[]): string[] => modules.map((name) => `grpc-handlers/${name}`);

/** The modules that a module, or a part of one, may import. Any module may list a `gen` folder. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  "plantstore/index.ts": ["plantstore/server", "plantstore/service", "plantstore/stores", "auth", "telemetry/logs"],
  "plantstore/command": ["plantstore/server", "gateway/command-line"],
  "plantstore/server": [
    "plantstore/service",
    "plantstore/stores",
    "plantstore/gen",
    "auth",
    "auth/inputs",
    "docs-page",
    "http-engine",
    "telemetry/logs",
    "telemetry/metrics",
    "telemetry/opentelemetry",
    ...inGateway("", "files", "health", "options", "protocols/mcp", "reflection"),
  ],
  "plantstore/stores": ["plantstore/service", ...inGateway("files", "options")],
  "plantstore/service": [
    "plantstore/gen",
    "auth",
    "auth/inputs",
    "telemetry/logs",
    ...inGateway("", "health", "options", "reflection"),
  ],
  "plantstore/client": ["plantstore/gen", "gateway/options"],
  "plantstore/gen": ["gateway/gen"],
  proxy: [
    "proxy/forward",
    "proxy/service-config",
    "proxy/upstreams",
    "http-engine",
    ...inGateway("", "create-gateway.ts", "listen", "protocols", "protocols/rest/rules", "serve"),
  ],
  "proxy/command": [
    "proxy",
    "proxy/check",
    "proxy/openapi",
    "proxy/settings",
    "proxy/upstreams",
    "auth",
    "auth/inputs",
    "docs-page",
    "telemetry/logs",
    "telemetry/metrics",
    ...inGateway("", "command-line", "files", "health", "protocols/mcp", "protocols/rest/rules", "validation"),
  ],
  "proxy/settings": [
    "auth",
    "proxy/check",
    "proxy/service-config",
    "proxy/upstreams",
    ...inGateway("exchange", "files", "health", "protocols/rest/rules"),
  ],
  "proxy/check": [
    "proxy/compare",
    "proxy/service-config",
    ...inGateway("", "command-line", "descriptors", "files", "protocols/mcp", "protocols/rest/rules"),
  ],
  "proxy/compare": inGateway("descriptors", "protocols/rest/rules"),
  "proxy/openapi": [
    "docs-page",
    "proxy/check",
    "proxy/service-config",
    ...inGateway("", "command-line", "descriptors", "protocols/mcp", "protocols/rest/rules", "validation"),
  ],
  "proxy/forward": [
    "proxy/client",
    "proxy/upstreams",
    ...inGateway("compression", "descriptors", "exchange", "files", "gen", "messages/binary", "protocols"),
    ...inGateway("protocols/rest/rules", "serve"),
  ],
  "proxy/client": [
    "proxy/upstreams",
    "http-engine/http2-client",
    ...inGateway("compression", "exchange", "messages/binary", "protocols"),
  ],
  "proxy/upstreams": ["http-engine/http2-client", ...inGateway("exchange", "gen")],
  "proxy/service-config": inGateway("protocols/rest/rules"),
  "rest-client": inGateway("exchange", "messages/json", "protocols", "protocols/rest/rules"),
  "docs-page": inGateway("exchange", "protocols", "serve"),

  auth: ["auth/inputs", ...inGateway("", "health", "options")],
  "auth/inputs": inGateway("files", "options"),
  frameworks: inGateway(""),
  "grpc-handlers": [...inHandlers("calls", "descriptors", "nestjs", "nice-grpc"), ...inGateway("", "serve")],
  ...Object.fromEntries(inHandlers("nestjs", "nice-grpc").map((name) => [name, []])),
  "grpc-handlers/calls": inGateway("exchange", "messages/binary", "protocols", "serve"),
  "grpc-handlers/descriptors": inGateway("descriptors", "gen"),
  "telemetry/logs": inGateway("", "health", "options"),
  "telemetry/metrics": ["telemetry/conventions", ...inGateway("listen", "protocols", "serve")],
  "telemetry/opentelemetry": ["telemetry/conventions", ...inGateway("serve")],
  "telemetry/conventions": inGateway("serve"),
  "http-engine": ["http-engine/http1", "http-engine/http2", ...inGateway("exchange", "listen")],
  "http-engine/http1": inGateway("exchange"),
  "http-engine/http2": inGateway("exchange"),
  "http-engine/http2-client": ["http-engine/http2", ...inGateway("exchange")],

  gateway: [
    ...inGateway("compression", "descriptors", "exchange", "fetch", "listen", "node", "openapi", "protocols"),
    ...inGateway("protocols/rest/rules", "serve", "trusted-proxies"),
  ],
  "gateway/fetch": inGateway("descriptors", "exchange", "fetch/exchange", "protocols", "protocols/rest/rules", "serve"),
  "gateway/fetch/exchange": inGateway("exchange"),
  "gateway/node": inGateway("exchange", "listen"),
  "gateway/listen": inGateway("exchange", "trusted-proxies"),
  "gateway/serve": [
    ...inGateway("descriptors", "exchange", "messages/json", "protocols", "protocols/rest/rules", "trusted-proxies"),
  ],
  "gateway/health": inGateway("gen", "serve"),
  "gateway/reflection": inGateway("gen"),
  "gateway/validation": inGateway("gen", "messages/json", "openapi", "serve"),
  "gateway/openapi": inGateway("descriptors", "exchange", "gen", "messages/json", "protocols/rest/rules"),
  "gateway/compression": inGateway("protocols"),
  "gateway/protocols": inGateway("exchange", "messages/binary", "messages/json", "protocols/rest/rules"),
  "gateway/protocols/mcp": inGateway("exchange", "messages/json", "openapi", "protocols", "protocols/rest/rules"),
  "gateway/protocols/rest/rules": inGateway("exchange", "gen", "messages/json"),
  "gateway/descriptors": inGateway("exchange", "gen"),
  "gateway/messages/json": inGateway("messages/codegen"),
  "gateway/messages/binary": inGateway("exchange", "messages/codegen"),
  "gateway/trusted-proxies": inGateway("exchange"),
  ...Object.fromEntries(
    inGateway("command-line", "errors", "exchange", "files", "messages/codegen", "options").map((name) => [name, []]),
  ),
};

/** The modules that every module of the packages may import, for error identifiers and option checks. */
const always = inGateway("errors", "options");

/** Entry files of modules in addition to their indexes. */
const entries: readonly string[] = [
  // Independent of RPC, so that HTTP does not load Connect.
  "gateway/errors/identifiers/index.ts",
  // Used by the proxy, which assembles a gateway differently.
  "gateway/create-gateway.ts",
  "proxy/create-proxy.ts",
  // Loaded before everything else.
  "gateway/command-line/queue-hangups.ts",
  "plantstore/server/preload-storage.ts",
  "plantstore/stores/sqlite/storage-thread.ts",
];

/** Longest first, so that "gateway/protocols/rest/rules" is found before "gateway". */
const modules = [...new Set([...Object.entries(arrows).flat(2), ...always].map((name) => name.replace(/\/$/, "")))]
  .filter((name) => name !== "gateway/create-gateway.ts")
  .toSorted((a, b) => b.length - a.length);

function moduleOf(file: string): string | undefined {
  return modules.find((name) => file === name || file.startsWith(`${name}/`));
}

interface PackageJson {
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The package.json of each package, whose exports and commands are source files. */
const manifests: ReadonlyMap<string, PackageJson> = new Map(
  Object.entries(sourceFolders).map(([name, folder]) => [
    name,
    JSON.parse(readFileSync(join(root, dirname(folder), "package.json"), "utf8")),
  ]),
);

/** Returns the file of a specifier: a path in the same package, or an export of another package. */
function fileOf(specifier: string, importer: string): string {
  if (!specifier.startsWith(".")) {
    const [, name = "", subpath = ""] = /^@plantstore\/([^/]+)(.*)$/.exec(specifier) ?? [];
    const file = manifests.get(name)?.exports[`.${subpath}`];
    if (file === undefined) throw new Error(`${importer} imports ${specifier}, which is no export`);
    return file.replace("./src", name);
  }
  // The page in the browser imports the compiled files.
  return relative("/", resolve("/", dirname(importer), specifier.replace(/\.js$/, ".ts")));
}

function importsOf(file: string): string[] {
  const text = readFileSync(sourcePath(file), "utf8");
  const specifiers = [...text.matchAll(/(?:from|import|import\()\s*"((?:\.|@plantstore\/)[^"]+)"/g)];
  return specifiers.map(([, specifier = ""]) => fileOf(specifier, file));
}

test.each(files)("%s imports by path only files from its own package", (file) => {
  const text = readFileSync(sourcePath(file), "utf8");
  const paths = [...text.matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)].map(([, path = ""]) => path);
  // The package.json is next to the source folder.
  const imported = paths.filter((path) => !path.endsWith("/package.json")).map((path) => fileOf(path, file));
  expect(imported.filter((path) => !existsSync(sourcePath(path)))).toEqual([]);
  expect(new Set([...imported, file].map((path) => path.split("/")[0])).size).toBe(1);
});

test.each(Object.keys(sourceFolders))(
  "%s imports the packages that its package.json declares, and no others",
  (name) => {
    const imported = files
      .filter((file) => file.startsWith(`${name}/`))
      .flatMap((file) => importsOf(file).map((path) => path.split("/")[0] ?? ""))
      .filter((other) => other !== name && !other.endsWith("package.json"));
    const declared = Object.keys(manifests.get(name)?.dependencies ?? {}).filter((each) =>
      each.startsWith("@plantstore/"),
    );
    expect([...new Set(imported)].map((other) => `@plantstore/${other}`).toSorted()).toEqual(declared.toSorted());
  },
);

test.each(files)("%s imports only allowed modules, by their index", (file) => {
  const from = moduleOf(file);
  const drawn = from === undefined ? undefined : arrows[from];
  const allowed = drawn && [...drawn.map((name) => name.replace(/\/$/, "")), ...always];
  expect(allowed, `${file} lies in no module that is drawn`).toBeDefined();
  const wrong = importsOf(file).filter((imported) => {
    if (imported.endsWith("package.json")) return false;
    const to = moduleOf(imported);
    if (to === from) return false;
    const isEntry = imported === `${to}/index.ts` || entries.includes(imported);
    return to === undefined || !allowed?.includes(to) || (!to.endsWith("/gen") && !isEntry);
  });
  expect(wrong).toEqual([]);
});

/** Returns the files that a file loads at run time, without type imports. */
function loadedBy(file: string): string[] {
  const text = readFileSync(sourcePath(file), "utf8");
  const specifiers = text.matchAll(/^(?:import|export) (?!type )[^;]*?from "((?:\.|@plantstore\/)[^"]+)"/gm);
  return [...specifiers].map(([, specifier = ""]) => fileOf(specifier, file)).filter((path) => path.endsWith(".ts"));
}

/** Undocumented members of Node.js, and what V8 calls unsafe. Any release may change them without notice. */
const privateOfNode: readonly RegExp[] = [
  // Underscored members: `socket._handle`, `socket["_handle"]`, `Reflect.get(socket, "_handle")`.
  /\._[A-Za-z]\w*/g,
  /\[\s*["'`]_\w+["'`]\s*\]/g,
  /\bReflect\.\w+\([^;]*?,\s*["'`]_\w+["'`]/g,
  // Members under symbols.
  /\bgetOwnPropertySymbols\b/g,
  /\bReflect\.ownKeys\b/g,
  // Internal methods of Buffer.prototype, and internals of Node.js.
  /\b(?:ascii|base64|base64url|hex|latin1|ucs2|utf8)(?:Slice|Write)\b/g,
  /\bprocess\.binding\b/g,
  // According to its documentation, flags that are set after the VM has started may crash the process.
  /\bsetFlagsFromString\b/g,
];

function privateAccessIn(text: string): string[] {
  return privateOfNode.flatMap((pattern) => text.match(pattern) ?? []);
}

test.each(files)("%s uses only documented Node members", (file) => {
  expect(privateAccessIn(readFileSync(sourcePath(file), "utf8"))).toEqual([]);
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
])("%s would be found in a source file", (line) => {
  expect(privateAccessIn(line)).not.toEqual([]);
});

test.each([
  "Reflect.get(message, field.localName)",
  'attributes["rpc.method"] === "_OTHER" ? "rpc.system.name" : "rpc.method"',
  'name.slice(0, -"_total".length)',
  "(flags, _operands, terminal) => run(flags, terminal)",
])("%s is not taken for private", (line) => {
  expect(privateAccessIn(line)).toEqual([]);
});

test("imports have no cycles, not even for types", () => {
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

test("every file is imported, so that every format and protocol is listed", () => {
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

test.each(["@connectrpc/connect-node", "@grpc/grpc-js"])("no other package imports %s", (dependency) => {
  const others = files.filter((file) => !/^(?:plantstore|grpc-handlers)\//.test(file));
  const importing = others.filter((file) => readFileSync(sourcePath(file), "utf8").includes(`"${dependency}`));
  expect(importing).toEqual([]);
});

const withSeparateEntry = /^gateway\/(?:gen\/grpc|health|protocols\/mcp|reflection)\//;
test.each([
  { entry: "gateway/index.ts", optional: withSeparateEntry },
  { entry: "gateway/fetch/entry.ts", optional: withSeparateEntry },
  { entry: "plantstore/server/index.ts", optional: /^gateway\/protocols\/mcp\// },
  { entry: "proxy/command/proxy-server.ts", optional: /^gateway\/protocols\/mcp\// },
])("$entry does not load the gateway's optional modules", ({ entry, optional }) => {
  const loaded = new Set([entry]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  expect(loaded.size).toBeGreaterThan(50);
  expect([...loaded].filter((file) => optional.test(file))).toEqual([]);
});

test("the Fetch gateway does not load Node.js modules, which create-gateway.ts passes in", () => {
  const loaded = new Set(["gateway/fetch/entry.ts"]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  const ofNode = /^(?:import|export) (?!type )[^;]*?from "node:|getBuiltinModule|\bBuffer\.|\brequire\(/m;
  expect([...loaded].filter((file) => ofNode.test(readFileSync(sourcePath(file), "utf8")))).toEqual([]);
});

test("the SQLite storage thread loads no packages, for a fast start", () => {
  const loaded = new Set(["plantstore/stores/sqlite/worker.ts"]);
  for (const file of loaded) for (const other of loadedBy(file)) loaded.add(other);
  const ofPackage = /^(?:import|export) (?!type )[^;]*?from "(?!node:|\.)/m;
  expect([...loaded].filter((file) => ofPackage.test(readFileSync(sourcePath(file), "utf8")))).toEqual([]);
});

test("the transcoding suite imports no other files, because it tests any server", () => {
  const folder = join(root, "packages/conformance");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const specifiers = sources.flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(
      ([, specifier = ""]) => (specifier.startsWith(".") ? resolve(folder, dirname(file), specifier) : specifier),
    ),
  );
  expect(sources.length).toBeGreaterThan(10);
  expect(specifiers.filter((specifier) => !specifier.startsWith("node:") && !specifier.startsWith(folder))).toEqual([]);
});

/** The pages that list modules: those of the plant store and of each package. */
const pages = [
  "docs/explanation/architecture.md",
  ...Object.keys(sourceFolders)
    .filter((name) => name !== "plantstore")
    .map((name) => `packages/${name}/src/README.md`),
].map((page) => ({ page, text: readFileSync(join(root, page), "utf8") }));

const listed = /^(\| `([a-z0-9/-]+)\/` \|.*\| )(\d+)(?= \|$)/gm;

function linesOf(name: string): number {
  const own = files.filter((file) => moduleOf(file) === name);
  return own.reduce((sum, file) => sum + readFileSync(sourcePath(file), "utf8").split("\n").length - 1, 0);
}

test("docs/explanation/architecture.md and the packages' pages list every module", () => {
  const folders = modules.filter((name) => !name.endsWith("/gen") && !name.endsWith(".ts") && linesOf(name) > 0);
  const names = pages.flatMap(({ text }) => [...text.matchAll(listed)].map(([, , name = ""]) => name));
  expect(names.toSorted()).toEqual(folders.toSorted());
});

// `npm test -- test/architecture.test.ts -u` updates the numbers.
test.each(pages)("the module line counts in $page are accurate within 20 %", async ({ page, text }) => {
  const counted = text.replace(listed, (row, before: string, name: string, lines: string) => {
    const real = linesOf(name);
    return Math.abs(real / Number(lines) - 1) < 0.2 ? row : `${before}${Math.round(real / 10) * 10}`;
  });
  await expect(counted).toMatchFileSnapshot(join(root, page));
});

const named = [...(pages[0]?.text ?? "").matchAll(/`((?:[a-z0-9-]+\/)+(?:[a-z0-9-]+\.ts)?)`/g)]
  .map(([, file = ""]) => file)
  .filter((file) => !file.startsWith("plantstore/") && file !== "internal/");

test.each([...new Set(named)])("%s in docs/explanation/architecture.md exists", (file) => {
  expect([root, join(root, "packages/gateway/src")].some((folder) => existsSync(join(folder, file)))).toBe(true);
});
