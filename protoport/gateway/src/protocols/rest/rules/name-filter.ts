import { matcherOf } from "../../../http/index.ts";

/**
 * Creates a function that returns whether a name matches a pattern. A pattern is an exact name, or a prefix that ends
 * with `*`, such as `utm_*`. Returns `undefined` without patterns.
 */
export function createNameFilter(patterns: readonly string[]): ((name: string) => boolean) | undefined {
  return patterns.length === 0 ? undefined : matcherOf(patterns);
}

/** Returns the patterns that match none of the given names. */
export function unmatchedPatterns(patterns: readonly string[], names: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !names.some(matcherOf([pattern])));
}
