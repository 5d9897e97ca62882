/**
 * Either the value of a text, or all that is wrong with the text, one clause each.
 *
 * The clauses never quote what was not understood: it may be a token in the wrong place, and they go to terminals and logs.
 */
export type Parsed<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Returns a text that was understood. */
export function parsed<T>(value: T): Parsed<T> {
  return { kind: "value", value };
}

/** Returns what is wrong with a text that was not. */
export function unparsed(...problems: readonly string[]): Parsed<never> {
  return { kind: "problems", problems };
}
