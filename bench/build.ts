import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The built programs. */
export interface Built {
  /** The path to the command `plantstore`, as npm installs it. */
  readonly command: string;
  /** Returns the path to a `bench/starts` program. */
  readonly programOf: (name: string) => string;
}

const project = join(import.meta.dirname, "..");
const outFolder = join(project, "node_modules/.bench");

/**
 * Builds the packages, and the `bench/starts` programs, which import the packages as they are published.
 *
 * Programs in TypeScript would first strip types, which takes longer than all other work until their first response.
 */
export function buildPrograms(): Built {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: project, stdio: "inherit" });
  rmSync(outFolder, { recursive: true, force: true });
  execFileSync("tsc", ["-p", join(import.meta.dirname, "tsconfig.starts.json")], { stdio: "inherit" });
  writeFileSync(join(outFolder, "package.json"), '{ "type": "module" }\n');
  // Node finds these packages before the workspace's packages, which are sources.
  mkdirSync(join(outFolder, "node_modules/@protoport"), { recursive: true });
  symlinkSync(join(project, "dist/gateway"), join(outFolder, "node_modules/@protoport/gateway"));
  return {
    command: join(project, "dist/plantstore/bin/command/main.js"),
    programOf: (name) => join(outFolder, "bench/starts", `${name}.js`),
  };
}
