import { execFileSync } from "node:child_process";
import { cpSync, globSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../protoport/tools/build/manifest.ts";

/** Builds the packages and copies the declarations for all their entries into a folder. */
export function writeDeclarations(folder: string): void {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: projectFolder, stdio: ["ignore", "ignore", "inherit"] });
  const dist = join(projectFolder, "dist");
  for (const file of globSync("*/lib/**/*.d.ts", { cwd: dist })) cpSync(join(dist, file), join(folder, file));
}
