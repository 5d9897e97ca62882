import { nearestName } from "@protoport/gateway/options";
import { toShortLine } from "@protoport/gateway/errors";
import { type DeclaredNames, declaredNames } from "@protoport/gateway/descriptors";
import { noBytes } from "@protoport/gateway/exchange";
import { type ExternalHttpRule, unmatchedPatterns } from "@protoport/gateway/rest";
import { readSelectorPlaces } from "./read-rules.ts";
import { lettersPerEdit } from "./unused-names.ts";

/** The services and RPCs that selectors can name. */
export interface SelectableRpcs {
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
