import type { DescService } from "@bufbuild/protobuf";
import { nearestName } from "@protoport/gateway/options";
import { type ExternalHttpRule, procedureOf, selectorOf } from "@protoport/gateway/rest";

/** A suggestion may correct one typo per 10 letters. RPC names share many letters, so more typos match other names. */
export const lettersPerEdit = 10;

/** Returns a line for each unused name. @param reason - why names that are not hidden by visibility are unused */
type DescribeUnused = (
  unused: readonly string[],
  served: readonly string[],
  toSubject: (name: string) => string,
  reason: string,
) => readonly string[];

/** Creates a function that describes unused names. @param hiddenRpcs - names that visibility hides */
export function createDescriber(hiddenRpcs: ReadonlySet<string>): DescribeUnused {
  return (unused, served, toSubject, reason) =>
    unused.map((name) => {
      // The names in `authentication.open` are paths, and the names in `hiddenRpcs` have dots.
      const isHidden = hiddenRpcs.has(name.replace(/^\//, "").replace("/", "."));
      if (isHidden) return `${toSubject(name)}: it is hidden by visibility`;
      const nearest = nearestName(name, served, lettersPerEdit);
      return `${toSubject(name)}: ${reason}${nearest === undefined ? "" : `, did you mean ${nearest}?`}`;
    });
}

/** Returns a line for each rule whose RPC is not served. @param rpcs - the served RPCs, as `package.Service.Method` */
export function describeUnusedRules(
  rules: readonly ExternalHttpRule[],
  rpcs: readonly string[],
  hiddenRpcs: ReadonlySet<string>,
): readonly string[] {
  const selectors = rules.map(({ selector = "" }) => selector);
  return createDescriber(hiddenRpcs)(
    findUnknownNames(selectors, rpcs),
    rpcs,
    (name) => `the rule for ${name} has no effect`,
    "no served RPC has this name",
  );
}

/** Returns the names that are not served. */
export function findUnknownNames(names: readonly string[], served: readonly string[]): readonly string[] {
  const known = new Set(served);
  return names.filter((name) => !known.has(name));
}

/** The kinds of RPC that can be tools. */
const callable: ReadonlySet<string> = new Set(["unary", "server_streaming"]);

/** The names that settings can select. */
interface SelectableNames {
  readonly typeNames: readonly string[];
  readonly rpcs: readonly string[];
  readonly paths: readonly string[];
  /** The RPCs that can be tools for AI agents. */
  readonly callableRpcs: readonly string[];
}

/** Returns the names in services that settings can select. */
export function selectableNames(services: readonly DescService[]): SelectableNames {
  const methods = services.flatMap((service) => service.methods);
  return {
    typeNames: services.map(({ typeName }) => typeName),
    rpcs: methods.map(selectorOf),
    paths: methods.map(procedureOf),
    callableRpcs: methods.filter(({ methodKind }) => callable.has(methodKind)).map(selectorOf),
  };
}
