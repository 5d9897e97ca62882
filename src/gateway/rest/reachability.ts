import type { RestBinding } from "./binding.ts";
import { type PathTemplate, printPathTemplate } from "./path-template.ts";
import type { RouteTable } from "./route-table.ts";

/**
 * Finds the bindings that no request can reach because more exact ones take all of their paths, each with the bindings
 * that take its paths.
 *
 * Every binding is tried with example paths of its own: `*` becomes a text that no template spells out, and `**` every
 * number of segments that could matter to some template. A binding that none of its examples reaches is shadowed.
 */
export function findShadowedBindings(
  table: RouteTable<RestBinding>,
  bindings: readonly RestBinding[],
): readonly { readonly binding: RestBinding; readonly by: readonly RestBinding[] }[] {
  const text = unspelledText(bindings);
  const segmentsMax = Math.max(0, ...bindings.map(({ template }) => template.segments.length));
  return bindings.flatMap((binding) => {
    const by = new Set<RestBinding>();
    for (const path of examplePaths(binding.template, text, segmentsMax)) {
      const match = table.match(binding.pattern.httpMethod, path);
      if (match.kind !== "binding") continue;
      if (match.binding === binding) return [];
      by.add(match.binding);
    }
    return by.size === 0 ? [] : [{ binding, by: [...by] }];
  });
}

function examplePaths(template: PathTemplate, text: string, segmentsMax: number): readonly string[] {
  const literal = { kind: "literal", text } as const;
  const counts = template.segments.some((segment) => segment.kind === "**") ? segmentsMax + 1 : 1;
  return Array.from({ length: counts }, (_, count) => {
    const segments = template.segments.flatMap((segment) => {
      if (segment.kind === "**") return Array.from({ length: count }, () => literal);
      return [segment.kind === "*" ? literal : segment];
    });
    return printPathTemplate({ segments, variables: [], verb: template.verb });
  });
}

// Longer than every literal, so it equals none of them.
function unspelledText(bindings: readonly RestBinding[]): string {
  const literals = bindings.flatMap(({ template }) =>
    template.segments.filter((segment) => segment.kind === "literal"),
  );
  return "x".repeat(1 + Math.max(0, ...literals.map((segment) => segment.text.length)));
}
