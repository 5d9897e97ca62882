/**
 * Returns the members that are not `undefined`. With `exactOptionalPropertyTypes`, an optional member must be missing.
 *
 * @param names - an object with the names of the members to return. By default, all members
 */
export function definedOf<T extends object, Name extends keyof T = keyof T>(
  object: T,
  names?: Readonly<Record<Name, unknown>>,
): { [Each in Name]?: Exclude<T[Each], undefined> };
export function definedOf(object: object, names: object = object): object {
  const given = Object.entries(object).filter(([name, value]) => value !== undefined && name in names);
  return Object.fromEntries(given);
}
