/**
 * Creates a function that returns the scope that a procedure (`/package.Service/Method`) requires, or `undefined` for
 * none.
 *
 * @param scopes - the scopes by selector: full RPC names, or prefixes with `*`. The most specific selector applies: the
 * full name, otherwise the longest prefix
 */
export function createRequiredScope(
  scopes: Readonly<Record<string, string>>,
): (procedure: string) => string | undefined {
  const byName = new Map(Object.entries(scopes));
  const prefixes = [...byName]
    .filter(([selector]) => selector.endsWith("*"))
    .map(([selector, scope]) => ({ prefix: selector.slice(0, -1), scope }))
    .toSorted((one, other) => other.prefix.length - one.prefix.length);
  return (procedure) => {
    const name = procedure.slice(1).replace("/", ".");
    return byName.get(name) ?? prefixes.find(({ prefix }) => name.startsWith(prefix))?.scope;
  };
}
