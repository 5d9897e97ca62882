import { readDescriptorSetInTurns } from "@protoport/gateway/descriptors";
import { createNameFilter } from "@protoport/gateway/rest";
import { readFiles, requireKnownNames } from "./known-names.ts";
import type { ServingParts } from "./serving-parts.ts";
import { requireDefinedScopes, type ServedScopes } from "./unchecked-scopes.ts";

/**
 * Checks settings against the descriptors in use, not against the descriptor files, which may have changed.
 *
 * @param previous - what a reload replaces
 * @throws SettingsProblem if the settings have unknown names, or do not require the scopes in the definition
 */
export async function requireServable(
  next: ServedScopes & { readonly descriptorSets: readonly Uint8Array[] },
  parts: ServingParts,
  previous?: ServingParts,
): Promise<void> {
  await requireKnownNames(parts.settings, next.descriptorSets);
  requireDefinedScopes(next, parts, previous);
}

/** Checks settings against the descriptor files, for a proxy that is not open yet. @throws SettingsProblem */
export async function requireServableFiles(parts: ServingParts): Promise<void> {
  const { upstreams, visibility } = parts.settings;
  const descriptorSets = await readFiles(parts.settings);
  const files = await Promise.all(
    descriptorSets.map(async (set, at) => {
      const isServed = createNameFilter(upstreams[at]?.services ?? []) ?? (() => true);
      // The start reports a file that cannot be read.
      const { services } = await readDescriptorSetInTurns(set, visibility).catch(() => ({ services: [] }));
      return services.filter(({ typeName }) => isServed(typeName));
    }),
  );
  const descriptorReloads = files.map((services) => ({ services: services.map(({ typeName }) => typeName) }));
  await requireServable({ services: files.flat(), descriptorReloads, descriptorSets }, parts);
}
