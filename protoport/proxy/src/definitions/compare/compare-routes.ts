import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { createUrlTextParser } from "@protoport/gateway/messages";
import {
  anyMethod,
  describeBinding,
  leafOf,
  type PathTemplate,
  printPathTemplate,
  resolveProtoPath,
  type RestBinding,
  type RestMatch,
  type RestRoutes,
  routesOverlap,
  selectorOf,
  type TemplateSegment,
} from "@protoport/gateway/rest";
import type { ChangeList, ChangeText } from "./change.ts";
import { compareBindings, requestOf, type RoutePair, bindingSubjectOf } from "./compare-bindings.ts";
import type { SourceElement } from "./source-line.ts";

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
  for (const path of examplePathsOfBinding(binding)) {
    const old = before.routes.match(httpMethod, path);
    // Skips an example path that a more specific route matched.
    if (old.kind !== "binding" || old.binding !== binding) continue;
    const match = now.routes.match(httpMethod, path);
    if (match.kind !== "binding") {
      changes.add("route-removed", bindingSubjectOf(binding), element, describeRemoved(binding, match, now));
      return undefined;
    }
    if (isOtherMethod(binding.method, match.binding.method, before.methods, now.methods)) {
      changes.add("route-taken", bindingSubjectOf(binding), match.binding.method, {
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
function examplePathsOfBinding({ template }: RestBinding): readonly string[] {
  const lengths = template.segments.some(({ kind }) => kind === "**") ? [1, 2, 3] : [1];
  return lengths.map((length) => {
    const segments = template.segments.flatMap((segment) => exampleSegmentsOf(segment, length));
    return printPathTemplate({ segments, variables: [], verb: template.verb });
  });
}

function exampleSegmentsOf(segment: TemplateSegment, length: number): readonly TemplateSegment[] {
  if (segment.kind === "literal") return [segment];
  // Most field types accept the text "1".
  const example = { kind: "literal", text: "1" } as const;
  return Array.from({ length: segment.kind === "**" ? length : 1 }, () => example);
}

/** Reports other RPCs' routes that now match some of an old route's paths. */
function reportShadowed(pair: RoutePair, before: RestRoutes, now: RestRoutes, changes: ChangeList): void {
  const binding = pair.before;
  const { httpMethod } = binding.pattern;
  for (const other of now.bindings) {
    if (other.method === pair.now.method) continue;
    // equivalent mutant: this check only saves time, because the matches below exclude routes that do not overlap.
    if (!routesOverlap(overlapShapeOf(other), overlapShapeOf(binding))) continue;
    const path = commonPath(other.template, binding.template);
    const method = httpMethod === anyMethod ? other.pattern.httpMethod : httpMethod;
    const [old, match] = [before.match(method, path), now.match(method, path)];
    if (old.kind !== "binding" || old.binding !== binding || !isAcceptable(binding, old.captures)) continue;
    if (match.kind !== "binding" || match.binding !== other) continue;
    changes.add("route-shadowed", bindingSubjectOf(binding), other.method, {
      change: `${describeBinding(other)} is more specific than ${requestOf(binding)}`,
      before: `${method} ${path} called ${selectorOf(binding.method)}`,
      now: `${selectorOf(other.method)} is called`,
    });
  }
}

function overlapShapeOf({ pattern, template }: RestBinding): Parameters<typeof routesOverlap>[0] {
  return { httpMethod: pattern.httpMethod, template };
}

/** Returns whether the path's fields accept the captured texts. For example, a number field refuses "search". */
function isAcceptable({ method, template }: RestBinding, captures: readonly string[]): boolean {
  return template.variables.every(({ fieldPath }, at) => {
    const path = resolveProtoPath(method.input, fieldPath);
    return captures[at] === wildcardText || (path !== undefined && acceptsText(leafOf(path), captures[at] ?? ""));
  });
}

function acceptsText(field: DescField, text: string): boolean {
  try {
    createUrlTextParser(field)?.(text);
    return true;
  } catch {
    return false;
  }
}

/** Text for a wildcard in {@link commonPath}. Most field types accept the text. */
const wildcardText = "1";

/** Returns a path that both templates match. The path contains the literals in both templates. */
function commonPath(one: PathTemplate, other: PathTemplate): string {
  const [fixed, general] = one.segments.some(({ kind }) => kind === "**") ? [other, one] : [one, other];
  const hasRest = general.segments.some(({ kind }) => kind === "**");
  const segments = fixed.segments.map((segment, at): TemplateSegment => {
    const literal = segment.kind === "literal" || hasRest ? segment : general.segments[at];
    return literal?.kind === "literal" ? literal : { kind: "literal", text: wildcardText };
  });
  return printPathTemplate({ segments, variables: [], verb: one.verb ?? other.verb });
}
