import { readdirSync } from "node:fs";

/** Returns the sorted relative paths of a folder's TypeScript files, without generated and installed files. */
export const sourceFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/(?:^|\/)(?:gen|node_modules)\//.test(name))
    .toSorted();
