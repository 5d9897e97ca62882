import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { requiredScopesOf } from "@plantstore/auth";
import { selectorOf } from "@plantstore/protocols";
import type { ProxySettings } from "./proxy-settings.ts";
import { createRequiredScope } from "./required-scopes.ts";

/**
 * Returns a line for each service with RPCs whose option `plantstore.auth.v1.required_scopes` names scopes that the
 * settings do not require. Without `authentication`, callers have no scopes, and only the upstream can check them.
 */
export function describeUncheckedScopes(
  services: readonly DescService[],
  { authentication }: Pick<ProxySettings, "authentication">,
): readonly string[] {
  if (authentication === undefined) return [];
  const open = new Set(authentication.open);
  const requiredScope = createRequiredScope(authentication.scopes);
  const isUnchecked = (method: DescMethod): boolean => {
    const procedure = `/${method.parent.typeName}/${method.name}`;
    if (open.has(procedure) || open.has(method.parent.typeName)) return false;
    const scope = requiredScope(procedure);
    return definedScopes(method).some((each) => each !== scope);
  };
  return services
    .map(({ methods }) => methods.filter(isUnchecked).map(selectorOf))
    .filter((names) => names.length > 0)
    .map(
      (names) =>
        `authentication does not check the option plantstore.auth.v1.required_scopes of ${names.join(", ")}: require ` +
        "the scopes with authentication.scopes",
    );
}

/** Returns an RPC's scopes. If the option is not valid, the scopes are unknown and match no setting. */
function definedScopes(method: DescMethod): readonly string[] {
  try {
    return requiredScopesOf(method) ?? [];
  } catch {
    return [""];
  }
}
