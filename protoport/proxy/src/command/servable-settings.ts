import { readDescriptorSetInTurns } from "@protoport/gateway/descriptors";
import { runInTurns } from "@protoport/gateway/exchange";
import { findOperationIdClash } from "@protoport/gateway/openapi";
import { compileInSteps, createNameFilter } from "@protoport/gateway/rest";
import type { ProxyGateway } from "../create-proxy.ts";
import { readFiles, requireKnownNames } from "./known-names.ts";
import type { ServingParts } from "./serving-parts.ts";
import { requireDefinedScopes, type ServedScopes } from "./unchecked-scopes.ts";

/**
 * Checks settings against the descriptors in use, not against the descriptor files, which may have changed.
 *
 * @param previous - what a reload replaces
 * @throws SettingsProblem if the settings have unknown names, do not require the scopes in the definition, or cause
 * equal operation ids
 */
export async function requireServable(
  next: ServedScopes & Pick<ProxyGateway, "descriptorSets" | "rest">,
  parts: ServingParts,
  previous?: ServingParts,
): Promise<void> {
  await requireKnownNames(parts.settings, next.descriptorSets);
  requireDefinedScopes(next, parts, previous);
  await requireOperationIds(next, parts);
}

/** @throws SettingsProblem if RPCs have equal operation ids in the document that the proxy would serve */
async function requireOperationIds(
  { services, rest }: Pick<ProxyGateway, "services" | "rest">,
  { settings: { hasDocs, operationIds, problemAt } }: ServingParts,
): Promise<void> {
  if (!hasDocs) return;
  const methods = services.flatMap((service) => service.methods);
  // The start reports rules of files that are not valid.
  const routes = await runInTurns(compileInSteps(methods, rest)).catch(() => undefined);
  const clash = findOperationIdClash(routes?.bindings.map(({ method }) => method) ?? [], operationIds);
  if (clash !== undefined) throw problemAt("openapi.operationIds", `is ${operationIds}, but ${clash}`);
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
  const { rest } = parts.settings;
  await requireServable({ services: files.flat(), descriptorReloads, descriptorSets, rest }, parts);
}
