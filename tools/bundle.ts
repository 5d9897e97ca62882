import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "rolldown";

// Bundles the package's own code into few files; the types are tsc's.
//
// Node needs a third of a millisecond to find and read a module, and there are two hundred of them: before the
// first answer that is as much as everything else the package does. Dependencies stay imports, so that a user's
// `ConnectError` is the package's. Nothing is minified: stack traces are for reading.

const project = join(import.meta.dirname, "..");
const source = join(project, "src");

await build({
  cwd: project,
  input: {
    index: "src/index.ts",
    "gateway/index": "src/gateway/index.ts",
    "client/index": "src/client/index.ts",
    "client/connect": "src/client/connect.ts",
    "cli/main": "src/cli/main.ts",
    // Started as a thread, so that no import leads to it.
    "plants/sqlite/worker": "src/plants/sqlite/worker.ts",
  },
  platform: "node",
  // Whatever is not a path.
  external: /^[^./]/,
  // Asked for by `includeDependenciesRecursively: false`. No entry exports more for it than its source, as test/package sees.
  preserveEntrySignatures: "allow-extension",
  output: {
    dir: "dist",
    minify: false,
    minifyInternalExports: false,
    chunkFileNames: ({ name }) => (name.includes("/") ? "[name].js" : "chunks/[name].js"),
    codeSplitting: {
      // A module that looks for a file beside it keeps its place, so that it finds it built as it does from source.
      groups: [{ debugName: "in place", name: (file) => (looksBesideItself(file) ? nameInSource(file) : null) }],
      includeDependenciesRecursively: false,
    },
  },
});

function looksBesideItself(file: string): boolean {
  return readFileSync(file, "utf8").includes("import.meta.");
}

function nameInSource(file: string): string {
  return relative(source, file).replace(/\.ts$/, "");
}
