import type { ProxyGateway } from "../create-proxy.ts";
import { requireKnownNames } from "./known-names.ts";
import type { ServingParts } from "./serving-parts.ts";
import { requireDefinedScopes } from "./unchecked-scopes.ts";

/**
 * Checks settings against the descriptors that a proxy has read. A file may have changed since the proxy has read it.
 *
 * @throws SettingsProblem if the settings have unknown names, or do not require the scopes in the definition
 */
export async function requireServable(
  next: Pick<ProxyGateway, "services" | "descriptorReloads" | "descriptorSets">,
  parts: ServingParts,
): Promise<void> {
  await requireKnownNames(parts.settings, next.descriptorSets);
  requireDefinedScopes(next, parts);
}
