/**
 * Thrown by the fast path if the exact implementation must determine the result. The value is a symbol, because
 * creating an Error with a stack trace would cost time.
 */
export const bailOut: unknown = Symbol("bail out");

/** Throws {@link bailOut}. */
export function throwBailOut(): never {
  throw bailOut;
}
