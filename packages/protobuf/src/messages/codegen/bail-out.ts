/**
 * Thrown by the fast path when the exact implementation must decide. A symbol, because creating an Error would cost
 * time for a stack trace that nobody reads.
 */
export const bailOut: unknown = Symbol("bail out");

/** Throws {@link bailOut}. */
export function throwBailOut(): never {
  throw bailOut;
}
