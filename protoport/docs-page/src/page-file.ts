import { pathToFileURL } from "node:url";

/**
 * Returns the URL of a page file. The function is in a separate module, because the build does not bundle modules that
 * use `import.meta.url`, nor their imports.
 */
export function pageFile(name: string): URL {
  // In a CommonJS bundle, import.meta is not defined.
  return new URL(`files/${name}`, import.meta.url ?? pathToFileURL(__filename).href);
}
