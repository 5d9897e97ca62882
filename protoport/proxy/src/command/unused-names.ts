import { describeUnusedLabels } from "@protoport/gateway/descriptors";
import { createNameFilter, selectorOf, unmatchedPatterns } from "@protoport/gateway/rest";
import { createDescriber, describeUnusedRules, findUnknownNames, selectableNames } from "../definitions/index.ts";
import type { ProxyGateway } from "../create-proxy.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The proxy members that {@link describeUnusedNames} reads. */
type ServedNames = Pick<ProxyGateway, "services" | "hiddenRpcs" | "visibilityLabels" | "descriptorReloads">;

/** Returns a line for each service or RPC name in the settings that is misspelled, not served, or hidden. */
export function describeUnusedNames(
  { services, hiddenRpcs, visibilityLabels, descriptorReloads }: ServedNames,
  settings: ProxySettings,
): readonly string[] {
  const { upstreams, rest, restServices, configuredMethods, authentication, visibility } = settings;
  const { typeNames, rpcs, paths } = selectableNames(services);
  const selected = selectedServices(upstreams, descriptorReloads);
  const describe = createDescriber(hiddenRpcs);
  return [
    ...describe(
      unmatchedPatterns(selected, typeNames),
      typeNames,
      (name) => `upstreams[].services has no effect for ${name}`,
      "no served service matches this name",
    ),
    ...describeUnusedRules(rest.rules ?? [], rpcs, hiddenRpcs),
    ...describe(
      unmatchedPatterns(restServices, typeNames),
      typeNames,
      (name) => `rest.services has no effect for ${name}`,
      "no served service matches this name",
    ),
    ...describe(
      findUnknownNames(configuredMethods, [...typeNames, ...rpcs]),
      [...typeNames, ...rpcs],
      (name) => `methodConfig has no effect for ${name}`,
      "no served service or RPC has this name",
    ),
    ...describe(
      findUnknownNames(authentication?.open ?? [], [...typeNames, ...paths]),
      [...typeNames, ...paths],
      (name) => `authentication.open has no effect for ${name}`,
      "no served service or RPC has this name",
    ),
    ...describe(
      unmatchedPatterns(Object.keys(authentication?.scopes ?? {}), rpcs),
      rpcs,
      (name) => `authentication.scopes.${name} has no effect`,
      "no served RPC matches this name",
    ),
    ...describe(
      findUnknownNames(rest.omit ?? [], rpcs),
      rpcs,
      (name) => `rest.omit has no effect for ${name}`,
      "no served RPC has this name",
    ),
    ...describeUnusedTools(services, settings, describe),
    ...describeUnusedLabels(visibility, visibilityLabels),
  ];
}

/** Returns a line for each name in `mcp` that has no effect. */
function describeUnusedTools(
  services: ServedNames["services"],
  { tools = [], paramHeaders = {} }: ProxySettings,
  describe: ReturnType<typeof createDescriber>,
): readonly string[] {
  const { callableRpcs } = selectableNames(services);
  const isTool = createNameFilter(tools);
  const methods = services.flatMap((service) => service.methods).filter((each) => isTool?.(selectorOf(each)) === true);
  const fields = methods.flatMap(({ input }) => input.fields.map(({ name }) => `${input.typeName}.${name}`));
  return [
    ...describe(
      unmatchedPatterns(tools, callableRpcs),
      callableRpcs,
      (name) => `--mcp ${name} has no effect`,
      "no served RPC matches that can be a tool",
    ),
    ...describe(
      findUnknownNames(Object.keys(paramHeaders), fields),
      fields,
      (name) => `mcp.paramHeaders has no effect for ${name}`,
      "no tool's request has this field",
    ),
  ];
}

/** Returns the `services` patterns for all upstreams with known descriptors. */
function selectedServices(
  upstreams: ProxySettings["upstreams"],
  reloads: ServedNames["descriptorReloads"],
): readonly string[] {
  const known = upstreams.filter((_, at) => reloads[at]?.lastSuccessMs !== undefined);
  return known.flatMap(({ services = [] }) => services);
}
