import type { DescService } from "@bufbuild/protobuf";
import { nearestName } from "@plantstore/http";
import { selectorOf, unmatchedPatterns } from "@plantstore/protocols";
import { describeUnusedLabels } from "../check/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The kinds of RPC that can be tools. */
const callable: ReadonlySet<string> = new Set(["unary", "server_streaming"]);

/** More than for options, because a package's names have many letters in common. */
const lettersPerEdit = 10;

/**
 * Returns a line for each service or RPC name in the settings that has no effect, because it is misspelled or no
 * upstream serves it.
 */
export function describeUnusedNames(
  services: readonly DescService[],
  visibilityLabels: ReadonlySet<string>,
  { rest, restServices, configuredMethods, authentication, tools = [], visibility }: ProxySettings,
): readonly string[] {
  const methods = services.flatMap((service) => service.methods);
  const rpcs = methods.map(selectorOf);
  const typeNames = services.map(({ typeName }) => typeName);
  const paths = methods.map(({ parent, name }) => `/${parent.typeName}/${name}`);
  const ruled = (rest.rules ?? []).map(({ selector = "" }) => selector);
  const scopes = Object.keys(authentication?.scopes ?? {});
  const callableRpcs = methods.filter(({ methodKind }) => callable.has(methodKind)).map(selectorOf);
  return [
    ...describe(
      unlisted(ruled, rpcs),
      rpcs,
      (name) => `the rule for ${name} has no effect: no served RPC has this name`,
    ),
    ...describe(
      unmatchedPatterns(restServices, typeNames),
      typeNames,
      (name) => `rest.services has no effect for ${name}: no served service matches this name`,
    ),
    ...describe(
      unlisted(configuredMethods, [...typeNames, ...rpcs]),
      [...typeNames, ...rpcs],
      (name) => `methodConfig has no effect for ${name}: no served service or RPC has this name`,
    ),
    ...describe(
      unlisted(authentication?.open ?? [], [...typeNames, ...paths]),
      [...typeNames, ...paths],
      (name) => `authentication.open has no effect for ${name}: no served service or RPC has this name`,
    ),
    ...describe(
      unmatchedPatterns(scopes, rpcs),
      rpcs,
      (name) => `authentication.scopes.${name} has no effect: no served RPC matches this name`,
    ),
    ...describe(
      unlisted(rest.omit ?? [], rpcs),
      rpcs,
      (name) => `rest.omit has no effect for ${name}: no served RPC has this name`,
    ),
    ...describe(
      unmatchedPatterns(tools, callableRpcs),
      callableRpcs,
      (name) => `--mcp ${name} has no effect: no served RPC matches that can be a tool`,
    ),
    ...describeUnusedLabels(visibility?.allow ?? [], visibilityLabels),
  ];
}

function unlisted(names: readonly string[], served: readonly string[]): readonly string[] {
  const known = new Set(served);
  return names.filter((name) => !known.has(name));
}

function describe(
  unused: readonly string[],
  served: readonly string[],
  toLine: (name: string) => string,
): readonly string[] {
  return unused.map((name) => {
    const nearest = nearestName(name, served, lettersPerEdit);
    return `${toLine(name)}${nearest === undefined ? "" : `, did you mean ${nearest}?`}`;
  });
}
