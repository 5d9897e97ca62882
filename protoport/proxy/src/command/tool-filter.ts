import { principalKey } from "@protoport/auth";
import type { McpOptions } from "@protoport/gateway/mcp";
import { procedureOf } from "@protoport/gateway/rest";
import { createRequiredScopes } from "../definitions/index.ts";

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
