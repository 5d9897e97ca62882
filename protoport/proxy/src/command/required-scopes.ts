import { NamePatterns } from "@protoport/gateway/options";

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
  const patterns = new NamePatterns(Object.entries(scopes));
  return (procedure) => patterns.get(procedure.slice(1).replace("/", "."))?.split(" ");
}
