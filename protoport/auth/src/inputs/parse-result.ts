/** A string's parsed value, or all its problems. A problem never quotes the string, which may be a misplaced token. */
export type ParseResult<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Returns the result for a valid string. */
export function parsed<T>(value: T): ParseResult<T> {
  return { kind: "value", value };
}

/** Returns the result for an invalid string. */
export function withProblems(...problems: readonly string[]): ParseResult<never> {
  return { kind: "problems", problems };
}

/** Returns the problems in several results. */
export function problemsOf(results: readonly ParseResult<unknown>[]): readonly string[] {
  return results.flatMap((result) => (result.kind === "problems" ? result.problems : []));
}
