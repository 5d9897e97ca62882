import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "./support/source-files.ts";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "src");

const inGateway = (room: string): string => `gateway/${room}`;

/** A room, or a part of the gateway, and the rooms it may import. A `gen` folder is open to all that list it. */
const arrows: readonly { readonly from: string; readonly to: readonly string[] }[] = [
  {
    from: "plantstore/index.ts",
    to: ["plantstore/server", "plantstore/service", "plantstore/plants", "operators/auth", "operators/operations"],
  },
  { from: "plantstore/cli", to: ["plantstore/server"] },
  {
    from: "plantstore/server",
    to: [
      "plantstore/service",
      "plantstore/plants",
      "plantstore/gen",
      ...["auth", "inputs", "operations"].map((room) => `operators/${room}`),
      "gateway",
      ...["docs-page", "health", "http-engine", "metrics", "opentelemetry", "options", "reflection"].map(inGateway),
    ],
  },
  { from: "plantstore/plants", to: ["plantstore/service", "gateway/options"] },
  {
    from: "plantstore/service",
    to: [
      "plantstore/gen",
      ...["auth", "inputs", "operations"].map((room) => `operators/${room}`),
      ...["", "/health", "/options", "/reflection"].map((room) => `gateway${room}`),
    ],
  },
  { from: "plantstore/client", to: ["plantstore/gen", "gateway/options"] },
  { from: "operators/auth", to: ["operators/inputs", "gateway", "gateway/options"] },
  { from: "operators/inputs", to: ["gateway/options"] },
  { from: "operators/operations", to: ["operators/inputs", "gateway", "gateway/health", "gateway/options"] },
  {
    from: "gateway",
    to: [
      "calls",
      "carriers",
      "carriers/sockets",
      "fetch",
      "node",
      "openapi",
      "protocols",
      "trusted-proxies",
      "rest",
      "zlib",
    ].map((room) => `gateway/${room}`),
  },
  {
    from: "gateway/create-proxy.ts",
    to: [
      "gateway",
      ...["calls", "carriers/sockets", "http-engine", "protocols", "proxy", "service-config", "upstreams"].map(
        inGateway,
      ),
    ],
  },
  {
    from: "gateway/calls",
    to: ["protocols", "trusted-proxies", "carriers", "rest", "json", "descriptors"].map((room) => `gateway/${room}`),
  },
  { from: "gateway/protocols", to: ["carriers", "rest", "json", "binary"].map((room) => `gateway/${room}`) },
  { from: "gateway/binary", to: ["gateway/carriers", "gateway/made-code"] },
  { from: "gateway/made-code", to: [] },
  { from: "gateway/carriers", to: [] },
  {
    from: "gateway/carriers/sockets",
    to: ["carriers", "trusted-proxies"].map((room) => `gateway/${room}`),
  },
  { from: "gateway/node", to: ["gateway/carriers", "gateway/carriers/sockets"] },
  {
    from: "gateway/http-engine",
    to: ["carriers", "carriers/sockets", "http1", "http2"].map((room) => `gateway/${room}`),
  },
  { from: "gateway/carriers/web", to: ["gateway/carriers"] },
  { from: "gateway/trusted-proxies", to: ["gateway/carriers"] },
  {
    from: "gateway/fetch",
    to: ["calls", "carriers", "carriers/web", "protocols", "rest"].map((room) => `gateway/${room}`),
  },
  { from: "gateway/zlib", to: ["gateway/protocols"] },
  {
    from: "gateway/client",
    to: ["binary", "carriers", "http2/client", "protocols", "upstreams", "zlib"].map((room) => `gateway/${room}`),
  },
  {
    from: "gateway/proxy",
    to: ["binary", "calls", "carriers", "client", "descriptors", "gen", "protocols", "rest", "upstreams", "zlib"].map(
      (room) => `gateway/${room}`,
    ),
  },
  { from: "gateway/rest-client", to: ["carriers", "json", "protocols", "rest"].map((room) => `gateway/${room}`) },
  { from: "gateway/upstreams", to: ["carriers", "gen", "http2/client"].map((room) => `gateway/${room}`) },
  { from: "gateway/http2/client", to: ["gateway/carriers", "gateway/http2"] },
  { from: "gateway/docs-page", to: ["gateway/calls", "gateway/carriers", "gateway/protocols"] },
  {
    from: "gateway/check",
    to: ["gateway", "gateway/descriptors", "gateway/rest", "gateway/service-config"],
  },
  {
    from: "gateway/command",
    to: [
      "gateway",
      ...["check", "create-proxy.ts", "docs-page", "health", "metrics", "rest", "upstreams"].map(inGateway),
    ],
  },
  { from: "gateway/service-config", to: ["gateway/rest"] },
  { from: "gateway/health", to: ["gateway/calls", "gateway/gen"] },
  { from: "gateway/conventions", to: ["gateway/calls"] },
  { from: "gateway/opentelemetry", to: ["gateway/calls", "gateway/conventions"] },
  {
    from: "gateway/metrics",
    to: ["calls", "carriers/sockets", "conventions", "protocols"].map((room) => `gateway/${room}`),
  },
  { from: "gateway/reflection", to: ["gateway/gen"] },
  { from: "gateway/rest", to: ["gateway/carriers", "gateway/json", "gateway/gen"] },
  { from: "gateway/openapi", to: ["carriers", "gen", "json", "rest"].map((room) => `gateway/${room}`) },
  { from: "gateway/json", to: ["gateway/made-code"] },
  { from: "gateway/errors", to: [] },
  { from: "gateway/descriptors", to: ["gateway/gen"] },
  { from: "gateway/options", to: [] },
  { from: "gateway/http1", to: ["gateway/carriers"] },
  { from: "gateway/http2", to: ["gateway/carriers"] },
];

/** Files that rooms are entered by besides their indexes. */
const entries: readonly string[] = [
  "gateway/create-proxy.ts",
  // By the proxy, which is another way to assemble a gateway.
  "gateway/create-gateway.ts",
  // Before everything else is loaded.
  "plantstore/server/begin-storage.ts",
  "plantstore/plants/sqlite/storage-thread.ts",
];

/** Longest first, so that "gateway/rest" is found before "gateway". */
const rooms = [...new Set(arrows.flatMap(({ from, to }) => [from, ...to]))].toSorted((a, b) => b.length - a.length);

function roomOf(file: string): string | undefined {
  return rooms.find((room) => file === room || file.startsWith(`${room}/`));
}

/** The file that a specifier names: of the same package by its path, of another by the package's name. */
function fileOf(specifier: string, importer: string): string {
  if (!specifier.startsWith(".")) return `${specifier.slice("@plantstore/".length)}/index.ts`;
  // The page in the browser imports what its TypeScript becomes.
  return relative(source, resolve(join(source, dirname(importer)), specifier.replace(/\.js$/, ".ts")));
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(source, file), "utf8");
  const specifiers = [...text.matchAll(/(?:from|import|import\()\s*"((?:\.|@plantstore\/)[^"]+)"/g)];
  return specifiers.map(([, specifier = ""]) => fileOf(specifier, file));
}

test.each(sourceFiles(source))("%s imports files of its own package alone by their paths", (file) => {
  const text = readFileSync(join(source, file), "utf8");
  const paths = [...text.matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g)].map(([, path = ""]) => path);
  const owners = paths.map((path) => fileOf(path, file).split("/")[0]);
  expect(new Set([...owners, file.split("/")[0]]).size).toBe(1);
});

test.each(sourceFiles(source))("%s imports only what its room may, by the index of the other room", (file) => {
  const from = roomOf(file);
  // Every room of the gateway names its errors, and refuses options that do not exist.
  const always = from?.startsWith("gateway") === true ? ["gateway/errors", "gateway/options"] : [];
  const drawn = arrows.find((arrow) => arrow.from === from)?.to;
  const allowed = drawn && [...drawn, ...always];
  expect(allowed, `${file} lies in no room that is drawn`).toBeDefined();
  const wrong = importsOf(file).filter((imported) => {
    // The manifest of the package: it is in no room.
    if (/^\w+\/package\.json$/.test(imported)) return false;
    const to = roomOf(imported);
    if (to === from) return false;
    const isEntry = imported === `${to}/index.ts` || entries.includes(imported);
    return to === undefined || !allowed?.includes(to) || (!to.endsWith("/gen") && !isEntry);
  });
  expect(wrong).toEqual([]);
});

/** The files that a file needs when it is loaded; types are gone by then. */
function loadedBy(file: string): string[] {
  const text = readFileSync(join(source, file), "utf8");
  const specifiers = [...text.matchAll(/^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)"/gm)].map(
    // The page in the browser imports what its TypeScript becomes.
    ([, specifier = ""]) => specifier.replace(/\.js$/, ".ts"),
  );
  return specifiers.map((specifier) => relative(source, resolve(join(source, dirname(file)), specifier)));
}

/** What no documentation of node describes, and what V8 calls unsafe: any release may change it without notice. */
const privateOfNode: readonly RegExp[] = [
  // Underscored members: `socket._handle`, `socket["_handle"]`, `Reflect.get(socket, "_handle")`.
  /\._[A-Za-z]\w*/g,
  /\[\s*["'`]_\w+["'`]\s*\]/g,
  /\bReflect\.\w+\([^;]*?,\s*["'`]_\w+["'`]/g,
  // Members under symbols.
  /\bgetOwnPropertySymbols\b/g,
  /\bReflect\.ownKeys\b/g,
  // Methods of Buffer.prototype that only node itself calls, and what node is made of.
  /\b(?:ascii|base64|base64url|hex|latin1|ucs2|utf8)(?:Slice|Write)\b/g,
  /\bprocess\.binding\b/g,
  // Node's documentation: flags that are set after the VM has started may crash the process.
  /\bsetFlagsFromString\b/g,
];

function privateAccessIn(text: string): string[] {
  return privateOfNode.flatMap((pattern) => text.match(pattern) ?? []);
}

test.each(sourceFiles(source))("%s uses documented members of node alone", (file) => {
  expect(privateAccessIn(readFileSync(join(source, file), "utf8"))).toEqual([]);
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

test("no file imports what imports it, not even for a type", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
    else if (!done.has(file)) for (const imported of importsOf(file)) visit(imported, [...way, file]);
    done.add(file);
  };
  for (const file of sourceFiles(source)) visit(file, []);
  expect(circles).toEqual([]);
});

/** Returns the files that a package is entered by: exports and commands. */
function entriesOf(name: string): string[] {
  const manifest = readFileSync(join(source, name, "package.json"), "utf8");
  return [...manifest.matchAll(/"\.\/([^"]+\.ts)"/g)].map(([, path = ""]) => `${name}/${path}`);
}

/** The files that are loaded by their path: the page in the browser, and a thread. */
const loadedByPath = ["gateway/docs-page/files/page.ts", "plantstore/plants/sqlite/worker.ts"];

test("every file is used: a format or protocol that is missing in its list is named here", () => {
  const used = new Set([...["gateway", "operators", "plantstore"].flatMap(entriesOf), ...loadedByPath]);
  for (const file of used) for (const imported of importsOf(file)) used.add(imported);
  expect(sourceFiles(source).filter((file) => !used.has(file))).toEqual([]);
});

test.each(["@connectrpc/connect-node", "@grpc/grpc-js", "pino"])("the gateway never imports %s", (dependency) => {
  const importing = sourceFiles(source).filter(
    (file) => file.startsWith("gateway/") && readFileSync(join(source, file), "utf8").includes(`"${dependency}`),
  );
  expect(importing).toEqual([]);
});

test.each(["index.ts", "fetch/entry.ts"])("gateway/%s loads nothing of what has an entry of its own", (entry) => {
  const files = new Set([`gateway/${entry}`]);
  for (const file of files) for (const loaded of loadedBy(file)) files.add(loaded);
  expect(files.size).toBeGreaterThan(50);
  expect(
    [...files].filter((file) =>
      /^gateway\/(check|client|command|conventions|docs-page|gen\/grpc|health|http-engine|http1|http2|metrics|opentelemetry|proxy|reflection|service-config|upstreams)\//.test(
        file,
      ),
    ),
  ).toEqual([]);
});

test("the gateway over Fetch loads nothing of node: what needs it is passed in by create-gateway.ts", () => {
  const files = new Set(["gateway/fetch/entry.ts"]);
  for (const file of files) for (const loaded of loadedBy(file)) files.add(loaded);
  const ofNode = /^(?:import|export) (?!type )[^;]*?from "node:|getBuiltinModule|\bBuffer\.|\brequire\(/m;
  expect([...files].filter((file) => ofNode.test(readFileSync(join(source, file), "utf8")))).toEqual([]);
});

test("the storage thread of SQLite loads no package: each start of a store would wait for it", () => {
  const files = new Set(["plantstore/plants/sqlite/worker.ts"]);
  for (const file of files) for (const loaded of loadedBy(file)) files.add(loaded);
  const ofPackage = /^(?:import|export) (?!type )[^;]*?from "(?!node:|\.)/m;
  expect([...files].filter((file) => ofPackage.test(readFileSync(join(source, file), "utf8")))).toEqual([]);
});

test("the transcoding suite imports nothing of this repository: it is for every server", () => {
  const folder = join(root, "conformance");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const specifiers = files.flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(
      ([, specifier = ""]) => (specifier.startsWith(".") ? resolve(folder, dirname(file), specifier) : specifier),
    ),
  );
  expect(files.length).toBeGreaterThan(10);
  expect(specifiers.filter((specifier) => !specifier.startsWith("node:") && !specifier.startsWith(folder))).toEqual([]);
});

const architecture = readFileSync(join(root, "docs/architecture.md"), "utf8");
const documented = /^(\| `([a-z0-9/-]+)\/` \|.*\| )(\d+)(?= \|$)/gm;

function linesOf(room: string): number {
  const files = sourceFiles(source).filter((file) => roomOf(file) === room);
  return files.reduce((sum, file) => sum + readFileSync(join(source, file), "utf8").split("\n").length - 1, 0);
}

test("docs/architecture.md lists every room", () => {
  const folders = rooms.filter((room) => !room.endsWith("/gen") && !room.endsWith(".ts") && linesOf(room) > 0);
  const listed = [...architecture.matchAll(documented)].map(([, , room = ""]) => room);
  expect(listed.toSorted()).toEqual(folders.toSorted());
});

// `npm test -- test/architecture.test.ts -u` corrects the others.
test("the lines of each room in docs/architecture.md are true within a fifth", async () => {
  const counted = architecture.replace(documented, (row, before: string, room: string, lines: string) => {
    const real = linesOf(room);
    return Math.abs(real / Number(lines) - 1) < 0.2 ? row : `${before}${Math.round(real / 10) * 10}`;
  });
  await expect(counted).toMatchFileSnapshot(join(root, "docs/architecture.md"));
});

const named = [...architecture.matchAll(/`((?:[a-z0-9-]+\/)+[a-z0-9-]+\.ts)`/g)].map(([, file = ""]) => file);

test.each([...new Set(named)])("%s, which docs/architecture.md names, is there", (file) => {
  expect(existsSync(join(/^(src|test|tools)\//.test(file) ? root : source, file))).toBe(true);
});
