/** Returns a function that matches names in lower case with a list of names. Names that end in `*` are prefixes. */
export function compileNamePatterns(patterns: readonly string[]): (name: string) => boolean {
  const lower = patterns.map((pattern) => pattern.toLowerCase());
  const names = new Set(lower.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = lower.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}
