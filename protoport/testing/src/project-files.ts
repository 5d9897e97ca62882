import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "./process/child-program.ts";

const ignored = readFileSync(join(projectFolder, ".gitignore"), "utf8").split("\n");
const others = new Set([".git", ...ignored]);

/** Returns the paths of all files in the project or a folder, without those whose names are in .gitignore. */
export const projectFiles = (folder: string = ""): string[] =>
  readdirSync(join(projectFolder, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (others.has(entry.name)) return [];
    if (entry.isDirectory()) return projectFiles(path);
    return entry.isFile() ? [path] : [];
  });
