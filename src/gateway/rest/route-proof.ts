import type { PathTemplate } from "./path-template.ts";
import { printPathTemplate } from "./print-path-template.ts";
import type { RouteTable } from "./route-table.ts";
import { anyMethod } from "./route-table.ts";

/** A route as it was declared. */
export interface DeclaredRoute<Target> {
  readonly httpMethod: string;
  readonly template: PathTemplate;
  readonly target: Target;
}

// Stands for any method without a route of its own; no client sends it.
const otherMethod = "OTHER-THAN-ALL";

/**
 * Finds the routes that no request can reach, because every path they match belongs to a more exact one,
 * and the route that takes their place.
 *
 * A route is proved by its own example paths: text that no template spells out for each `*`, and for `**`
 * as many segments as make a difference to any template. Who of them gets none is never matched.
 */
export function findShadowedRoutes<Target>(
  table: RouteTable<Target>,
  routes: readonly DeclaredRoute<Target>[],
): readonly { readonly route: DeclaredRoute<Target>; readonly by: Target }[] {
  const text = unspelledText(routes);
  const segmentsMax = Math.max(0, ...routes.map((route) => route.template.segments.length));
  return routes.flatMap((route) => {
    let by: Target | undefined;
    for (const path of examplePaths(route.template, text, segmentsMax)) {
      const match = table.match(route.httpMethod === anyMethod ? otherMethod : route.httpMethod, path);
      if (match.kind !== "route") continue;
      if (match.target === route.target) return [];
      by = match.target;
    }
    return by === undefined ? [] : [{ route, by }];
  });
}

function examplePaths(template: PathTemplate, text: string, segmentsMax: number): readonly string[] {
  const hasRest = template.segments.some((segment) => segment.kind === "**");
  const counts = hasRest ? Array.from({ length: segmentsMax + 1 }, (_, count) => count) : [0];
  const literal = { kind: "literal", text } as const;
  return counts.map((count) => {
    const segments = template.segments.flatMap((segment) => {
      if (segment.kind === "**") return Array.from({ length: count }, () => literal);
      return [segment.kind === "*" ? literal : segment];
    });
    return printPathTemplate({ segments, variables: [], verb: template.verb });
  });
}

// Longer than every literal, so it is none of them.
function unspelledText(routes: readonly DeclaredRoute<unknown>[]): string {
  const literals = routes.flatMap((route) => route.template.segments.filter((segment) => segment.kind === "literal"));
  return "x".repeat(1 + Math.max(0, ...literals.map((segment) => segment.text.length)));
}
