/**
 * Creates a function that returns all scopes that a procedure (`/package.Service/Method`) requires, or `undefined` for
 * none.
 *
 * @param scopes - space-separated scopes by selector. A selector is a full RPC name, or a prefix with `*`. A full
 * name takes precedence, and then the longest prefix
 */
export function createRequiredScopes(
  scopes: Readonly<Record<string, string>>,
): (procedure: string) => readonly string[] | undefined {
  const byName = new Map(Object.entries(scopes));
  const prefixes = [...byName]
    .filter(([selector]) => selector.endsWith("*"))
    .map(([selector, scope]) => ({ prefix: selector.slice(0, -1), scope }))
    .toSorted((one, other) => other.prefix.length - one.prefix.length);
  return (procedure) => {
    const name = procedure.slice(1).replace("/", ".");
    const found = byName.get(name) ?? prefixes.find(({ prefix }) => name.startsWith(prefix))?.scope;
    return found?.split(" ");
  };
}
