import type { DescService } from "@bufbuild/protobuf";
import { type DeclaredNames, declaredNames } from "@protoport/gateway/descriptors";
import { toShortLine } from "@protoport/gateway/errors";
import { noBytes } from "@protoport/gateway/exchange";
import { nearestName } from "@protoport/gateway/options";
import { type ExternalHttpRule, procedureOf, selectorOf, unmatchedPatterns } from "@protoport/gateway/rest";
import { readSelectorPlaces } from "./read-input.ts";

/** The services and RPCs that selectors can name. */
interface SelectableRpcs {
  /** The services that are served, by full name. */
  readonly services: readonly string[];
  /** All RPCs in the descriptors, served or not, as `package.Service.Method`. */
  readonly rpcs: readonly string[];
}

/**
 * Returns one problem per HTTP rule selector that names an unknown service or RPC in a served package. Each problem has
 * the selector's line and column. Unknown names in other packages are accepted, because a Google service config also
 * has rules for mixins, such as google.longrunning.Operations.
 */
export async function findUnknownSelectors(
  path: string,
  rules: readonly ExternalHttpRule[],
  { services, rpcs }: SelectableRpcs,
): Promise<readonly string[]> {
  const known = new Set(rpcs);
  const packages = new Set(services.map(parentOf));
  const isMistake = (selector: string): boolean =>
    !known.has(selector) && (!selector.includes(".") || packages.has(parentOf(parentOf(selector))));
  const mistakes = new Set(rules.map(({ selector = "" }) => selector).filter(isMistake));
  if (mistakes.size === 0) return [];
  const places = await readSelectorPlaces(path);
  return [...mistakes].map((selector) => {
    const place = [path, ...(places.get(selector) ?? [])].join(":");
    return `${place}: selector must be an RPC of the descriptors, ${describeGot(selector, rpcs)}`;
  });
}

/** Returns the end of an error message, with the unknown name and the nearest known name. */
function describeGot(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, [...new Set(known)], lettersPerEdit);
  return `got "${toShortLine(name)}"${nearest === undefined ? "" : `, did you mean ${nearest}?`}`;
}

/** Returns the package of a service, or the service of an RPC, by full name. */
function parentOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf(".")));
}

/** Returns each pattern that matches no declared service, with a problem. @param known - the declared services */
export function findUnknownServices(
  patterns: readonly string[],
  known: readonly string[],
): readonly { readonly pattern: string; readonly problem: string }[] {
  return unmatchedPatterns(patterns, known).map((pattern) => {
    const names = pattern.endsWith("*") ? known.flatMap(prefixesOf) : known;
    return { pattern, problem: `must match a service of the descriptors, ${describeGot(pattern, names)}` };
  });
}

/** Returns the names in a descriptor set, or `undefined` for an unknown or invalid set. */
export function namesIn(set: Uint8Array = noBytes): DeclaredNames | undefined {
  if (set.length === 0) return undefined;
  try {
    return declaredNames(set);
  } catch {
    return undefined;
  }
}

/** Returns the patterns for a service's package and parent packages: `a.*` and `a.b.*` for `a.b.Service`. */
function prefixesOf(typeName: string): readonly string[] {
  const parts = typeName.split(".").slice(0, -1);
  return parts.map((_, at) => `${parts.slice(0, at + 1).join(".")}.*`);
}

/** A suggestion may correct one typo per 10 letters. RPC names share many letters, so more typos match other names. */
const lettersPerEdit = 10;

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
