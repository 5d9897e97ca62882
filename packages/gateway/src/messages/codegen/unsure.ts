/** Thrown by quick code where the exact one has to decide. Not an error: it says nothing, and needs no stack. */
export const unsure: unknown = Symbol("left to the exact way");

/** Throws {@link unsure}. */
export function refuse(): never {
  throw unsure;
}
