import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What was built: files that node runs. */
export interface Built {
  /** The command `plantstore`, as npm installs it. */
  readonly command: string;
  /** Returns where a program of `bench/starts` is. */
  readonly programOf: (name: string) => string;
}

const project = join(import.meta.dirname, "..");
const outFolder = join(project, "node_modules/.bench");

/**
 * Builds the packages, and the programs of `bench/starts` beside the gateway as it is published, anew.
 *
 * A program that is started from TypeScript has its types stripped first, which takes longer than
 * everything else that it does until its first answer.
 */
export function buildPrograms(): Built {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: project, stdio: "inherit" });
  rmSync(outFolder, { recursive: true, force: true });
  execFileSync("tsc", ["-p", join(import.meta.dirname, "tsconfig.starts.json")], { stdio: "inherit" });
  writeFileSync(join(outFolder, "package.json"), '{ "type": "module" }\n');
  // Found before that of the workspace, which is source.
  mkdirSync(join(outFolder, "node_modules/@plantstore"), { recursive: true });
  for (const name of ["gateway", "http-engine"]) {
    symlinkSync(join(project, "dist", name), join(outFolder, "node_modules/@plantstore", name));
  }
  return {
    command: join(project, "dist/plantstore/bin/command/main.js"),
    programOf: (name) => join(outFolder, "bench/starts", `${name}.js`),
  };
}
