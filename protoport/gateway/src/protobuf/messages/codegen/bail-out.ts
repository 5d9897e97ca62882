/** Thrown by the fast path if the exact implementation must determine the result. A symbol needs no stack trace. */
export const bailOut: unknown = Symbol("bail out");

/** Throws {@link bailOut}. */
export function throwBailOut(): never {
  throw bailOut;
}
