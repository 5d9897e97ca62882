import { principalKey } from "@protoport/auth";
import type { McpOptions } from "@protoport/gateway/mcp";
import { NamePatterns } from "@protoport/gateway/options";
import { procedureOf } from "@protoport/gateway/rest";

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

/** Creates a filter that lists only the tools that a caller's token may call. */
export function createToolFilter(
  scopes: Readonly<Record<string, string>>,
  isOpen: (procedure: string) => boolean,
): NonNullable<McpOptions["isListed"]> {
  const requiredScopes = createRequiredScopes(scopes);
  return (method, { contextValues }) => {
    const procedure = procedureOf(method);
    const held = contextValues.get(principalKey)?.scopes;
    if (held === "all" || isOpen(procedure)) return true;
    return (requiredScopes(procedure) ?? []).every((scope) => held?.has(scope) === true);
  };
}
