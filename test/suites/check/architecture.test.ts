import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { assignedConstantsIn, moduleVariablesIn } from "../../../protoport/testing/src/module-state.ts";
import { projectFiles, projectFolder } from "@protoport/testing/process";
import { type Fences, moduleNames, privateAccessIn } from "../../../protoport/testing/src/source-tree.ts";
import { plantStoreTree as tree } from "../../support/source-files.ts";

/** Plants, PlantService, PLANTSTORE_URL, deletePlant; not "transplant". */
const plant = /(?<![a-z])plant|Plant|PLANT/;

const inProtoport = projectFiles("protoport");

test("no file in protoport/ mentions plants", () => {
  const lines = inProtoport.flatMap((file) =>
    readFileSync(join(projectFolder, file), "utf8")
      .split("\n")
      .flatMap((line, at) => (plant.test(line) ? [`${file}:${String(at + 1)}: ${line.trim().slice(0, 100)}`] : [])),
  );
  expect(inProtoport.length).toBeGreaterThan(500);
  expect(inProtoport.filter((file) => plant.test(file))).toEqual([]);
  expect(lines).toEqual([]);
});

/** Returns the paths outside some folders that files import, relative to the project folder. */
const importsOutside = (files: readonly string[], folders: RegExp): string[] =>
  files
    .filter((file) => /\.[cm]?[jt]s$/.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(projectFolder, file), "utf8");
      const paths = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, path = ""]) => path);
      const imported = paths.map((path) => normalize(join(dirname(file), path)));
      return imported.filter((path) => !folders.test(path)).map((path) => `${file} -> ${path}`);
    });

test("protoport/ imports no file outside", () => expect(importsOutside(inProtoport, /^protoport\//)).toEqual([]));

/** Everything of the plant store, and Protoport's files for tests and tools, whose manifests have its versions. */
const shared =
  /^(?!protoport\/)|^protoport\/(?:(?:testing|test|bench|tools|examples|gateway\/test\/suites\/mcp)\/|[\w-]+\/package\.json$)/;

test.each([
  { folder: "src", folders: /^src\/|^package\.json$/ },
  { folder: "examples", folders: /^examples\// },
  { folder: "test", folders: shared },
  { folder: "tools", folders: shared },
  { folder: "bench", folders: shared },
])("$folder/ imports no sources of Protoport by path", ({ folder, folders }) => {
  expect(importsOutside(projectFiles(folder), folders)).toEqual([]);
});

// oxfmt-ignore
const fences: Fences = {
  allowed: {
    "plantstore/index.ts": ["plantstore/server", "plantstore/service", "plantstore/stores", "@protoport/auth",
      "@protoport/telemetry/logs"],
    "plantstore/command": ["plantstore/server", "plantstore/service", "plantstore/stores", "@protoport/auth",
      "@protoport/auth/inputs", "@protoport/command-line", "@protoport/command-line/settings",
      "@protoport/telemetry/logs", "@protoport/telemetry/metrics"],
    "plantstore/server": ["plantstore/service", "plantstore/stores", "plantstore/gen", "@protoport/auth",
      "@protoport/auth/inputs", "@protoport/command-line", "@protoport/command-line/settings", "@protoport/docs-page",
      "@protoport/gateway", "@protoport/gateway/health", "@protoport/gateway/mcp", "@protoport/gateway/openapi",
      "@protoport/gateway/reflection", "@protoport/telemetry/logs", "@protoport/telemetry/metrics",
      "@protoport/telemetry/opentelemetry"],
    "plantstore/stores": ["plantstore/service", "@protoport/command-line"],
    "plantstore/service": ["plantstore/gen", "@protoport/auth", "@protoport/auth/inputs", "@protoport/gateway",
      "@protoport/gateway/health", "@protoport/gateway/reflection", "@protoport/telemetry/logs"],
    "plantstore/client": ["plantstore/gen"],
    "plantstore/gen": ["@protoport/gateway/gen/google/api/annotations_pb.js"],
  },
  everywhere: ["@protoport/gateway/errors", "@protoport/gateway/exchange", "@protoport/gateway/options"],
  entries: ["plantstore/server/preload-storage.ts", "plantstore/stores/sqlite/storage-thread.ts"],
};

test("source files import only entry points of allowed modules", () => {
  expect(tree.files.length).toBeGreaterThan(90);
  expect(tree.wrongPaths()).toEqual([]);
  expect(tree.wrongImports(fences)).toEqual([]);
});

test("source files use only documented members of Node.js", () => {
  for (const file of tree.files) expect.soft(privateAccessIn(tree.textOf(file)), file).toEqual([]);
});

test("source files have no state in module variables", () => {
  for (const file of tree.files) {
    const text = tree.textOf(file);
    expect.soft([...moduleVariablesIn(text), ...assignedConstantsIn(text)], file).toEqual([]);
  }
});

test("imports have no cycles, including imports of types", () => expect(tree.cycles()).toEqual([]));

test("every source file is an entry point or imported by another file", () =>
  expect(tree.unusedFiles(["plantstore/stores/sqlite/worker.ts"])).toEqual([]));

/** Source files that read with node:fs functions, which wait for a named pipe's writer. */
const readers: Readonly<Record<string, string>> = {
  "plantstore/command/demo.ts": "reads the token that a demo has written, before it handles signals",
  "plantstore/command/stores.ts": "imports identifiers from a pipe too, before it handles signals",
  "plantstore/stores/sqlite/file-names.ts": "reads /proc/self/mountinfo, which is never a pipe",
};

test("only the listed source files read files with node:fs", () => {
  const reads = /^import [^;]*\b(?:readFile|readFileSync|createReadStream)\b[^;]*? from "node:fs/m;
  const found = tree.files.filter((file) => tree.textOf(file).search(reads) >= 0);
  expect(found.toSorted()).toEqual(Object.keys(readers).toSorted());
});

/** Returns whether a file loads a package or an entry, directly or through other files of the plant store. */
function loads(file: string, specifier: RegExp): string[] {
  const imports = new RegExp(String.raw`^(?:import|export) (?!type )[^;]*?from "(?:${specifier.source})`, "m");
  return [...tree.allLoadedBy(file)].filter((each) => imports.test(tree.textOf(each)));
}

test("plantstore/server/index.ts does not load MCP", () =>
  expect(loads("plantstore/server/index.ts", /@protoport\/gateway\/mcp/)).toEqual([]));

test("the SQLite storage thread loads no packages", () =>
  expect(loads("plantstore/stores/sqlite/worker.ts", /(?!node:|\.)/)).toEqual([]));

test.each(["pg", "node:http"])("the plantstore command loads %s only on demand", (name) => {
  expect(tree.allLoadedBy("plantstore/command/run-command-line.ts").size).toBeGreaterThan(50);
  expect(loads("plantstore/command/run-command-line.ts", new RegExp(`${name}"`))).toEqual([]);
});

test("the sources stay within their lines, files and exports per 1,000 lines", () => {
  // A commit that raises a limit gives the reason in its body.
  const { lines, files, exports } = tree.sizeOf("plantstore");
  expect(lines).toBeLessThanOrEqual(10_634);
  expect(files).toBeLessThanOrEqual(98);
  expect(exports).toBeLessThanOrEqual(36);
});

const page = join(projectFolder, "docs/explanation/architecture.md");
test("docs/explanation/architecture.md lists every module", () => {
  const listed = readFileSync(page, "utf8").matchAll(/^\| `([a-z0-9/-]+)\/` \|/gm);
  const folders = moduleNames(fences.allowed).filter((name) => !/\/gen$|\.ts$/.test(name));
  expect(Array.from(listed, ([, name = ""]) => name).toSorted()).toEqual(folders.toSorted());
});
