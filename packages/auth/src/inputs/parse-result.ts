/**
 * The value that a text was parsed to, or everything that is wrong with it, one clause each.
 *
 * The clauses are printed and logged. They never quote the text, which may be a token in the wrong place.
 */
export type ParseResult<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Returns the result for a valid text. */
export function parsed<T>(value: T): ParseResult<T> {
  return { kind: "value", value };
}

/** Returns the result for a text with these problems. */
export function notParsed(...problems: readonly string[]): ParseResult<never> {
  return { kind: "problems", problems };
}

/** Returns everything that is wrong with several texts. */
export function problemsOf(results: readonly ParseResult<unknown>[]): readonly string[] {
  return results.flatMap((result) => (result.kind === "problems" ? result.problems : []));
}
