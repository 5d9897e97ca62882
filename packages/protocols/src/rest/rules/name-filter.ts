/**
 * Creates a function that returns whether a name matches a pattern. A pattern is an exact name, or a prefix that ends
 * with `*`, such as `utm_*`. Returns `undefined` without patterns.
 */
export function createNameFilter(patterns: readonly string[]): ((name: string) => boolean) | undefined {
  if (patterns.length === 0) return undefined;
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

/** Returns the patterns that match none of the given names. */
export function unmatchedPatterns(patterns: readonly string[], names: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => {
    const matches = createNameFilter([pattern]);
    return !names.some((name) => matches?.(name));
  });
}
