import type { DescMethod } from "@bufbuild/protobuf";
import {
  printPathTemplate,
  type RestBinding,
  type RestMatch,
  type RestRoutes,
  selectorOf,
  type TemplateSegment,
} from "@protoport/gateway/rest";
import type { ChangeList, ChangeText } from "./change.ts";
import type { SourceElement } from "./source-line.ts";
import { compareBindings, requestOf, type RoutePair, subjectOf } from "./compare-bindings.ts";
import { reportShadowed } from "./shadowed-routes.ts";

/** A definition's RPCs, by their full names. */
type Methods = ReadonlyMap<string, DescMethod>;

/** One definition's routes. */
export interface RoutedMethods {
  readonly methods: Methods;
  readonly routes: RestRoutes;
}

/**
 * Compares REST routes by example requests for each old route.
 *
 * @param reportedElementOf - returns an RPC's new declaration, or the service or file that declared the RPC
 * @returns the old routes that still exist, each with its new route
 */
export function compareRoutes(
  before: RoutedMethods,
  now: RoutedMethods,
  changes: ChangeList,
  reportedElementOf: (method: DescMethod) => SourceElement,
): readonly RoutePair[] {
  return before.routes.bindings.flatMap((binding) => {
    const pair = findPair(binding, before, now, changes, reportedElementOf(binding.method));
    if (pair === undefined) return [];
    reportShadowed(pair, before.routes, now.routes, changes);
    compareBindings(pair, changes);
    return [pair];
  });
}

/**
 * Returns the new route that matches an old route's example requests. If a request no longer reaches the RPC, reports
 * the change and returns `undefined`.
 */
function findPair(
  binding: RestBinding,
  before: RoutedMethods,
  now: RoutedMethods,
  changes: ChangeList,
  element: SourceElement,
): RoutePair | undefined {
  let pair: RoutePair | undefined;
  const { httpMethod } = binding.pattern;
  for (const path of examplePaths(binding)) {
    const old = before.routes.match(httpMethod, path);
    // Skips an example path that a more specific route matched.
    if (old.kind !== "binding" || old.binding !== binding) continue;
    const match = now.routes.match(httpMethod, path);
    if (match.kind !== "binding") {
      changes.add("route-removed", subjectOf(binding), element, describeRemoved(binding, match, now));
      return undefined;
    }
    if (isOtherMethod(binding.method, match.binding.method, before.methods, now.methods)) {
      changes.add("route-taken", subjectOf(binding), match.binding.method, {
        change: `${requestOf(match.binding)} calls ${selectorOf(match.binding.method)}`,
        before: `${httpMethod} ${path} called ${selectorOf(binding.method)}`,
        now: `${selectorOf(match.binding.method)} is called`,
      });
      return undefined;
    }
    pair ??= { before: binding, now: match.binding };
  }
  return pair;
}

/** Returns whether a route calls a different RPC than before. A renamed RPC is not different. */
function isOtherMethod(old: DescMethod, method: DescMethod, before: Methods, now: Methods): boolean {
  const [oldName, name] = [selectorOf(old), selectorOf(method)];
  return oldName !== name && (now.has(oldName) || before.has(name));
}

function describeRemoved(binding: RestBinding, match: RestMatch, now: RoutedMethods): ChangeText {
  const others = now.routes.bindings.filter(({ method }) => selectorOf(method) === selectorOf(binding.method));
  return {
    change: others.length === 0 ? "the route is removed" : `the RPC has ${others.map(requestOf).join(" and ")}`,
    before: `${requestOf(binding)} called ${selectorOf(binding.method)}`,
    now: match.kind === "method-not-allowed" ? `405, Allow: ${match.allow}` : "404",
  };
}

/** Returns example paths for a route. `**` is replaced by one, two or three segments. */
function examplePaths({ template }: RestBinding): readonly string[] {
  const lengths = template.segments.some(({ kind }) => kind === "**") ? [1, 2, 3] : [1];
  return lengths.map((length) => {
    const segments = template.segments.flatMap((segment) => exampleOf(segment, length));
    return printPathTemplate({ segments, variables: [], verb: template.verb });
  });
}

function exampleOf(segment: TemplateSegment, length: number): readonly TemplateSegment[] {
  if (segment.kind === "literal") return [segment];
  // Most field types accept the text "1".
  const example = { kind: "literal", text: "1" } as const;
  return Array.from({ length: segment.kind === "**" ? length : 1 }, () => example);
}
