/**
 * Returns where a file of the page is. In a module of its own, which imports nothing: the build keeps modules that look
 * beside themselves in their place, together with what they import.
 */
export function pageFile(name: string): URL {
  return new URL(`files/${name}`, import.meta.url);
}
