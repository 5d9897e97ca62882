/** As strict as `deepStrictEqual`, and faster, except that it ignores the order of properties. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  const names = Object.getOwnPropertyNames(a);
  if (names.length !== Object.getOwnPropertyNames(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && isSameValue(Reflect.get(a, name), Reflect.get(b, name)));
}
