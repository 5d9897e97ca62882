/**
 * Thrown by the fast path when the exact implementation must decide. A symbol, because a stack trace would be wasted.
 */
export const bailOut: unknown = Symbol("bail out");

/** Throws {@link bailOut}. */
export function bail(): never {
  throw bailOut;
}
