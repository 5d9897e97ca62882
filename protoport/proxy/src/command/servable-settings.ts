import type { ProxyGateway } from "../create-proxy.ts";
import { requireKnownNames } from "./known-names.ts";
import type { ServingParts } from "./serving-parts.ts";
import { requireDefinedScopes } from "./unchecked-scopes.ts";

/**
 * Checks settings against the descriptors in use, not against the descriptor files, which may have changed.
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
