import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

/** What was built. */
export interface Built {
  /** Whether a server program was built; those of the peers are not. */
  readonly has: (program: string) => boolean;
  /** Where a server program is as JavaScript. */
  readonly programOf: (program: string) => string;
  /**
   * What tells the plant server's program to run the package as it is built, and every program to keep its compiled
   * code from start to start, as the package's command line does by itself.
   */
  readonly environment: NodeJS.ProcessEnv;
}

const project = join(import.meta.dirname, "..");
const packageFolder = join(project, "dist/plantstore");
const outFolder = join(project, "node_modules/.bench");

/**
 * Builds the package and the server programs, anew.
 *
 * A server that is started from TypeScript has its types stripped first, which takes longer than
 * everything else that it does until its first answer.
 */
export function buildServers(): Built {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: project, stdio: "inherit" });
  // The package finds the others as they are built, too, and not in the workspace.
  const packages = join(packageFolder, "node_modules/@plantstore");
  mkdirSync(packages, { recursive: true });
  for (const name of ["gateway", "operators"]) symlinkSync(join(project, "dist", name), join(packages, name));
  rmSync(outFolder, { recursive: true, force: true });
  execFileSync("tsc", ["-p", join(import.meta.dirname, "tsconfig.servers.json")], { stdio: "inherit" });
  writeFileSync(join(outFolder, "package.json"), '{ "type": "module" }\n');
  return {
    has: (program) => program.startsWith(join(import.meta.dirname, "servers")),
    programOf: (program) => join(outFolder, relative(project, program)).replace(/\.ts$/, ".js"),
    environment: { PLANTSTORE_DIST: join(project, "dist"), NODE_COMPILE_CACHE: join(outFolder, "compile-cache") },
  };
}
