import { nearestName } from "@protoport/gateway/options";
import type { ExternalHttpRule } from "@protoport/gateway/rest";

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
