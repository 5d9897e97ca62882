import type { DescField } from "@bufbuild/protobuf";
import { createUrlTextParser } from "@protoport/gateway/messages";
import {
  anyMethod,
  describeBinding,
  leafOf,
  type PathTemplate,
  printPathTemplate,
  resolveProtoPath,
  type RestBinding,
  type RestRoutes,
  routesOverlap,
  selectorOf,
  type TemplateSegment,
} from "@protoport/gateway/rest";
import type { ChangeList } from "./change.ts";
import { requestOf, type RoutePair, subjectOf } from "./compare-bindings.ts";

/** Reports other RPCs' routes that now match some of an old route's paths. */
export function reportShadowed(pair: RoutePair, before: RestRoutes, now: RestRoutes, changes: ChangeList): void {
  const binding = pair.before;
  const { httpMethod } = binding.pattern;
  for (const other of now.bindings) {
    if (other.method === pair.now.method) continue;
    // equivalent mutant: this check only saves time, because the matches below exclude routes that do not overlap.
    if (!routesOverlap(shapeOf(other), shapeOf(binding))) continue;
    const path = commonPath(other.template, binding.template);
    const method = httpMethod === anyMethod ? other.pattern.httpMethod : httpMethod;
    const [old, match] = [before.match(method, path), now.match(method, path)];
    if (old.kind !== "binding" || old.binding !== binding || !isAcceptable(binding, old.captures)) continue;
    if (match.kind !== "binding" || match.binding !== other) continue;
    changes.add("route-shadowed", subjectOf(binding), other.method, {
      change: `${describeBinding(other)} is more specific than ${requestOf(binding)}`,
      before: `${method} ${path} called ${selectorOf(binding.method)}`,
      now: `${selectorOf(other.method)} is called`,
    });
  }
}

function shapeOf({ pattern, template }: RestBinding): Parameters<typeof routesOverlap>[0] {
  return { httpMethod: pattern.httpMethod, template };
}

/** Returns whether the path's fields accept the captured texts. For example, a number field refuses "search". */
function isAcceptable({ method, template }: RestBinding, captures: readonly string[]): boolean {
  return template.variables.every(({ fieldPath }, at) => {
    const path = resolveProtoPath(method.input, fieldPath);
    return captures[at] === wildcardText || (path !== undefined && accepts(leafOf(path), captures[at] ?? ""));
  });
}

function accepts(field: DescField, text: string): boolean {
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
