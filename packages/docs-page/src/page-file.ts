/**
 * Returns the URL of a file of the page. This is a separate module without imports, because the build does not bundle
 * modules that use `import.meta.url`, nor the modules that they import.
 */
export function pageFile(name: string): URL {
  return new URL(`files/${name}`, import.meta.url);
}
