import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectFolder as project } from "../protoport/tools/build/manifest.ts";

// `npm run generate` writes the `gen/` folders in src and test, openapi.json, the man page and the proxy's
// settings table. With `-- --check`, the program writes the files to a temporary folder instead, and fails if the
// project's files differ.

/** The test definitions, which are separate buf modules. */
const testDefinitions = [
  ...["files", "catalog", "kitchensink", "library", "moved", "orders", "signup", "streams"].map(
    (name) => `protoport/testing/proto/${name}`,
  ),
  "protoport/conformance/proto/transcoding",
];

/** The generated files and folders, relative to the project's folder. */
const generated = [
  "protoport/gateway/src/protobuf/gen",
  "src/gen",
  "protoport/testing/src/gen",
  "openapi.json",
  "man/plantstore.1",
  "protoport/docs/reference/proxy-configuration.md",
];

/** Runs a program in the project's folder and returns its output. */
function run(program: string, args: readonly string[], input?: Buffer): Buffer {
  return execFileSync(program, args, {
    cwd: project,
    input,
    stdio: ["pipe", "pipe", "inherit"],
    maxBuffer: 64 * 1024 * 1024,
  });
}

/** Writes a file and creates its folder. */
function write(folder: string, file: string, text: Buffer): void {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Generates everything into a folder, with the same paths as in the project. */
function generate(folder: string): void {
  for (const template of ["buf.gen.yaml", "protoport/gateway/proto/buf.gen.yaml"]) {
    run("buf", ["generate", "--template", template, "-o", folder]);
  }
  const definition = run("buf", ["build", "--path", "proto/plantstore", "--exclude-imports", "-o", "-"]);
  write(folder, "src/gen/comments.ts", run(process.execPath, ["tools/write-comments.ts"], definition));
  write(folder, "openapi.json", run(process.execPath, ["src/command/main.ts", "openapi"]));
  write(folder, "man/plantstore.1", run(process.execPath, ["tools/write-man-page.ts"]));
  const settings = run(process.execPath, ["protoport/tools/write-proxy-settings.ts"]);
  write(folder, "protoport/docs/reference/proxy-configuration.md", settings);

  const paths = testDefinitions.flatMap((path) => ["--path", path]);
  const workspace = ["--config", "protoport/testing/proto/buf.workspace.yaml", "--exclude-source-info"];
  const image = run("buf", ["build", ...workspace, "-o", "-", ...paths]);
  run("buf", ["generate", "-", "--template", "protoport/testing/proto/buf.gen.yaml", "-o", folder], image);
}

/** Compares the generated files with the project's, and prints the differences. */
function check(): boolean {
  const folder = join(project, "node_modules/.generated");
  rmSync(folder, { recursive: true, force: true });
  generate(folder);
  const differing = generated.filter((path) => {
    const { status } = spawnSync("diff", ["-r", join(folder, path), join(project, path)], { stdio: "inherit" });
    return status !== 0;
  });
  if (differing.length > 0)
    process.stderr.write(`generated files are out of date: ${differing.join(", ")}; run "npm run generate"\n`);
  return differing.length === 0;
}

if (process.argv.includes("--check")) process.exitCode = check() ? 0 : 1;
else generate(project);
