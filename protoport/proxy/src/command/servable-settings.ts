import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { readDescriptorSetInTurns } from "@protoport/gateway/descriptors";
import { runInTurns } from "@protoport/gateway/exchange";
import { findOperationIdClash } from "@protoport/gateway/openapi-checks";
import { NamePatterns } from "@protoport/gateway/options";
import { compileInSteps, createNameFilter, procedureOf, selectorOf } from "@protoport/gateway/rest";
import type { ProxyGateway } from "../create-proxy.ts";
import { createRequiredScopes, findUncheckedScopes, type UncheckedRpcs } from "../definitions/index.ts";
import { SettingsProblem } from "../settings/index.ts";
import { readFiles, requireKnownNames } from "./known-names.ts";
import type { ServingParts } from "./serving-parts.ts";

/**
 * Checks settings against the descriptors in use, not against the descriptor files, which may have changed.
 *
 * @param previous - what a reload replaces
 * @throws SettingsProblem if the settings have unknown names, do not require the scopes in the definition, or cause
 * equal operation ids
 */
export async function requireServable(
  next: ServedScopes & Pick<ProxyGateway, "bindings" | "descriptorSets">,
  parts: ServingParts,
  previous?: ServingParts,
): Promise<void> {
  await requireKnownNames(parts.settings, next.descriptorSets);
  requireDefinedScopes(next, parts, previous);
  const { hasDocs, operationIds, problemAt } = parts.settings;
  const clash = hasDocs ? findOperationIdClash(next.bindings, operationIds) : undefined;
  if (clash !== undefined) throw problemAt("openapi.operationIds", `is ${operationIds}, but ${clash}`);
}

/** Checks settings against the descriptor files, for a proxy that is not open yet. @throws SettingsProblem */
export async function requireServableFiles(parts: ServingParts): Promise<void> {
  const { upstreams, visibility } = parts.settings;
  const descriptorSets = await readFiles(parts.settings);
  const described = await Promise.all(
    descriptorSets.map(async (set, at) => {
      const isServed = createNameFilter(upstreams[at]?.services ?? []) ?? (() => true);
      // The start reports a file that cannot be read.
      const { services } = await readDescriptorSetInTurns(set, visibility).catch(() => ({ services: [] }));
      return services.filter(({ typeName }) => isServed(typeName));
    }),
  );
  const descriptorReloads = described.map((each) => ({ services: each.map(({ typeName }) => typeName) }));
  const services = described.flat();
  const methods = services.flatMap((service) => service.methods);
  // The start reports rules that are not valid.
  const routes = await runInTurns(compileInSteps(methods, parts.settings.rest)).catch(() => undefined);
  await requireServable({ services, descriptorReloads, descriptorSets, bindings: routes?.bindings ?? [] }, parts);
}

/** The settings and the access checks that determine which scopes are checked. */
type CheckedScopes = Pick<ServingParts, "settings" | "accessChecks">;

/** The services that a proxy serves, and their upstreams. */
interface ServedScopes {
  readonly services: readonly DescService[];
  /** The services of each upstream. */
  readonly descriptorReloads: readonly { readonly services: readonly string[] }[];
}

/**
 * Checks that the settings require the scopes in descriptor files. For upstreams with reflection, which may add RPCs,
 * `createBearerAuth` fails the calls instead.
 *
 * @param previous - the settings that a reload replaces. RPCs whose scopes they require must keep their scopes, also
 * with reflection. A file that is read while it is written may lack entries, so entries of served RPCs must be kept,
 * too
 * @throws SettingsProblem that names the RPCs
 */
function requireDefinedScopes(
  { services, descriptorReloads }: ServedScopes,
  parts: CheckedScopes,
  previous?: CheckedScopes,
): void {
  const { upstreams, problemAt } = parts.settings;
  const ofFiles = descriptorReloads.filter((_, at) => upstreams[at]?.descriptors !== "reflection");
  const names = new Set(ofFiles.flatMap((each) => each.services));
  const before = previous?.settings.authentication && findUncheckedRpcs(services, previous);
  const unchecked = findUncheckedRpcs(services, parts);
  const refused = (kind: keyof UncheckedRpcs): readonly DescMethod[] =>
    unchecked[kind].filter((method) => names.has(method.parent.typeName) || before?.[kind].includes(method) === false);
  const found = { restricted: refused("restricted"), undefined: refused("undefined") };
  const problems = uncheckedProblemsOf(found).map((problem) => problemAt("authentication.scopes", problem).message);
  if (problems.length > 0) throw new SettingsProblem(problems.join("\n"));
  const lost = previous === undefined ? "" : findLostEntries(services, parts, previous).join(", ");
  if (lost !== "") throw problemAt("authentication.scopes", `must keep ${lost}; restart to require fewer scopes`);
}

/** Returns the names in the previous scopes that are missing, and without which a served RPC needs fewer scopes. */
function findLostEntries(
  services: readonly DescService[],
  { settings, accessChecks: { isOpen } }: CheckedScopes,
  previous: CheckedScopes,
): readonly string[] {
  const { scopes: before = {} } = previous.settings.authentication ?? {};
  const { scopes: after = {} } = settings.authentication ?? {};
  const entries = new NamePatterns(Object.keys(before).map((name) => [name, name]));
  const requiredScopes = createRequiredScopes(after);
  const lost = services
    .flatMap(({ methods }) => methods)
    .flatMap((method) => {
      const name = entries.get(selectorOf(method));
      if (name === undefined || Object.hasOwn(after, name) || isOpen?.(procedureOf(method)) === true) return [];
      const required = requiredScopes(procedureOf(method)) ?? [];
      return before[name]?.split(" ").every((scope) => required.includes(scope)) === true ? [] : [name];
    });
  return [...new Set(lost)];
}

/** Returns lines about RPCs whose calls fail because the settings do not require the RPCs' scopes. */
export function describeUncheckedScopes(services: readonly DescService[], parts: CheckedScopes): readonly string[] {
  return uncheckedProblemsOf(findUncheckedRpcs(services, parts)).map(
    (problem) => `authentication.scopes ${problem}; until then, calls of these RPCs fail`,
  );
}

/** Returns the problems with `authentication.scopes`, each without the setting's name at the beginning. */
function uncheckedProblemsOf(unchecked: UncheckedRpcs): readonly string[] {
  const option = "the option protoport.auth.v1.required_scopes";
  const restricted = unchecked.restricted.map(selectorOf).join(", ");
  const undefinedRpcs = unchecked.undefined.map(selectorOf).join(", ");
  return [
    ...(restricted === "" ? [] : [`must require the scopes that ${option} names for ${restricted}`]),
    ...(undefinedRpcs === "" ? [] : [`must name ${undefinedRpcs}, which must have ${option} otherwise`]),
  ];
}

/** Returns the RPCs for which the settings require less than the option, or no RPCs if callers have no scopes. */
function findUncheckedRpcs(
  services: readonly DescService[],
  { settings: { authentication }, accessChecks: { isOpen } }: CheckedScopes,
): UncheckedRpcs {
  if (authentication === undefined) return { restricted: [], undefined: [] };
  return findUncheckedScopes(services, createRequiredScopes(authentication.scopes), isOpen ?? (() => false));
}
