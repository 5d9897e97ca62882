import { readdirSync } from "node:fs";

/** Returns the TypeScript files below a folder, without generated and installed ones, by their paths from it and in order. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/(?:^|\/)(?:gen|node_modules)\//.test(name))
    .toSorted();
}
