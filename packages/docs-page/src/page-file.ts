import { pathToFileURL } from "node:url";

/**
 * Returns the URL of a page file. This is a separate module without imports, because the build does not bundle modules
 * that use `import.meta.url`, nor the modules that they import.
 */
export function pageFile(name: string): URL {
  // A bundle in CommonJS has no import.meta.
  return new URL(`files/${name}`, import.meta.url ?? pathToFileURL(__filename).href);
}
