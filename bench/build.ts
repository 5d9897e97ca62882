import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const project = join(import.meta.dirname, "..");
const outFolder = join(project, "node_modules/.bench");

/**
 * Builds the server programs and all of src/, as the package is built, and returns where a program then is.
 *
 * A server that is started from TypeScript has its types stripped first, which takes longer than
 * everything else that it does until its first answer.
 */
export function buildServers(): (program: string) => string {
  execFileSync("tsc", ["-p", join(import.meta.dirname, "tsconfig.servers.json")], { stdio: "inherit" });
  writeFileSync(join(outFolder, "package.json"), '{ "type": "module" }\n');
  return (program) => join(outFolder, relative(project, program)).replace(/\.ts$/, ".js");
}
