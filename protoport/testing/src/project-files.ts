import { readdirSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "./process/child-program.ts";

const others = new Set([".git", "node_modules", "dist", ".plantstore"]);

/** Returns the paths of all files in the project or a folder, without installed and built ones. */
export function projectFiles(folder: string = ""): string[] {
  return readdirSync(join(projectFolder, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (others.has(entry.name)) return [];
    if (entry.isDirectory()) return projectFiles(path);
    return entry.isFile() ? [path] : [];
  });
}
