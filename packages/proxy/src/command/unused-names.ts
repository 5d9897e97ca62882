import { nearestName } from "@plantstore/http";
import { procedureOf, selectorOf, unmatchedPatterns } from "@plantstore/protocols";
import { describeUnusedLabels } from "../check/index.ts";
import type { ProxyGateway } from "../create-proxy.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The kinds of RPC that can be tools. */
const callable: ReadonlySet<string> = new Set(["unary", "server_streaming"]);

/** The letters per edit in names of RPCs. More than for options, because a package's names have many letters in common. */
export const lettersPerEdit = 10;

/** What {@link describeUnusedNames} needs of a proxy. */
type ServedNames = Pick<ProxyGateway, "services" | "hiddenRpcs" | "visibilityLabels" | "descriptorReloads">;

/**
 * Returns a line for each service or RPC name in the settings that has no effect, because it is misspelled, no upstream
 * serves it, or visibility hides it.
 */
export function describeUnusedNames(
  { services, hiddenRpcs, visibilityLabels, descriptorReloads }: ServedNames,
  { upstreams, rest, restServices, configuredMethods, authentication, tools = [], visibility }: ProxySettings,
): readonly string[] {
  const { typeNames, rpcs, paths, callableRpcs } = namesOf(services);
  const ruled = (rest.rules ?? []).map(({ selector = "" }) => selector);
  const selected = selectedServices(upstreams, descriptorReloads);
  const describe = createDescriber(hiddenRpcs);
  return [
    ...describe(
      unmatchedPatterns(selected, typeNames),
      typeNames,
      (name) => `upstreams[].services has no effect for ${name}`,
      "no served service matches this name",
    ),
    ...describe(
      unlisted(ruled, rpcs),
      rpcs,
      (name) => `the rule for ${name} has no effect`,
      "no served RPC has this name",
    ),
    ...describe(
      unmatchedPatterns(restServices, typeNames),
      typeNames,
      (name) => `rest.services has no effect for ${name}`,
      "no served service matches this name",
    ),
    ...describe(
      unlisted(configuredMethods, [...typeNames, ...rpcs]),
      [...typeNames, ...rpcs],
      (name) => `methodConfig has no effect for ${name}`,
      "no served service or RPC has this name",
    ),
    ...describe(
      unlisted(authentication?.open ?? [], [...typeNames, ...paths]),
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
      unlisted(rest.omit ?? [], rpcs),
      rpcs,
      (name) => `rest.omit has no effect for ${name}`,
      "no served RPC has this name",
    ),
    ...describe(
      unmatchedPatterns(tools, callableRpcs),
      callableRpcs,
      (name) => `--mcp ${name} has no effect`,
      "no served RPC matches that can be a tool",
    ),
    ...describeUnusedLabels(visibility?.allow ?? [], visibilityLabels),
  ];
}

/** The names by which settings select what is served. */
interface SelectableNames {
  readonly typeNames: readonly string[];
  readonly rpcs: readonly string[];
  readonly paths: readonly string[];
  /** The RPCs that can be tools. */
  readonly callableRpcs: readonly string[];
}

function namesOf(services: ServedNames["services"]): SelectableNames {
  const methods = services.flatMap((service) => service.methods);
  return {
    typeNames: services.map(({ typeName }) => typeName),
    rpcs: methods.map(selectorOf),
    paths: methods.map(procedureOf),
    callableRpcs: methods.filter(({ methodKind }) => callable.has(methodKind)).map(selectorOf),
  };
}

/** Returns the patterns in `services` of all upstreams whose descriptors are known. */
function selectedServices(
  upstreams: ProxySettings["upstreams"],
  reloads: ServedNames["descriptorReloads"],
): readonly string[] {
  const known = upstreams.filter((_, at) => reloads[at]?.lastSuccessMs !== undefined);
  return known.flatMap(({ forwarding: { services = [] } }) => services);
}

/** Returns a line for each unused name. @param reason - why it is unused, unless visibility hides it */
type DescribeUnused = (
  unused: readonly string[],
  served: readonly string[],
  toSubject: (name: string) => string,
  reason: string,
) => readonly string[];

function createDescriber(hiddenRpcs: ReadonlySet<string>): DescribeUnused {
  return (unused, served, toSubject, reason) =>
    unused.map((name) => {
      // Open RPCs are paths.
      const isHidden = hiddenRpcs.has(name.replace(/^\//, "").replace("/", "."));
      if (isHidden) return `${toSubject(name)}: it is hidden by visibility`;
      const nearest = nearestName(name, served, lettersPerEdit);
      return `${toSubject(name)}: ${reason}${nearest === undefined ? "" : `, did you mean ${nearest}?`}`;
    });
}

function unlisted(names: readonly string[], served: readonly string[]): readonly string[] {
  const known = new Set(served);
  return names.filter((name) => !known.has(name));
}
