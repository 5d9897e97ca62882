import type { RestBinding } from "./binding.ts";
import { type PathTemplate, printPathTemplate } from "./path-template.ts";
import type { RouteTable } from "./route-table.ts";

/**
 * Finds bindings that no request can reach, and the more specific bindings that match all paths of an unreachable
 * binding.
 *
 * Each binding is tried with example paths. `*` becomes a string that is not a literal in any template, and `**`
 * becomes up to as many of these strings as the longest template has segments. A binding that no example path reaches
 * is shadowed. Yields after each binding.
 */
export function* findShadowedBindings(
  table: RouteTable<RestBinding>,
  bindings: readonly RestBinding[],
): Generator<void, readonly ShadowedBinding[]> {
  const shadowed: ShadowedBinding[] = [];
  const text = unmatchedText(bindings);
  const segmentsMax = maximum(bindings.map(({ template }) => template.segments.length));
  for (const binding of bindings) {
    const by = new Set<RestBinding>();
    for (const path of examplePaths(binding.template, text, segmentsMax)) {
      const match = table.match(binding.pattern.httpMethod, path);
      if (match.kind === "binding") by.add(match.binding);
      if (by.has(binding)) break;
    }
    if (by.size > 0 && !by.has(binding)) shadowed.push({ binding, by: [...by] });
    yield;
  }
  return shadowed;
}

/** A binding, and the more specific bindings that match all of its paths. */
interface ShadowedBinding {
  readonly binding: RestBinding;
  readonly by: readonly RestBinding[];
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

// Returns a string that is longer than every literal, and so equals no literal.
function unmatchedText(bindings: readonly RestBinding[]): string {
  const literals = bindings.flatMap(({ template }) =>
    template.segments.filter((segment) => segment.kind === "literal"),
  );
  return "x".repeat(1 + maximum(literals.map((segment) => segment.text.length)));
}

// Math.max(...numbers) would overflow the stack with more than a hundred thousand numbers.
function maximum(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}
