/** Decides whether two REST routes can match the same request. */
import type { HttpPattern } from "./http-rule.ts";
import type { PathTemplate, TemplateSegment } from "./path-template.ts";
import { anyMethod } from "./route-table.ts";

/** A route's HTTP method and path template. */
export interface RouteShape extends Pick<HttpPattern, "httpMethod"> {
  readonly template: PathTemplate;
}

/** A template segment, or `any`, which matches one segment that may be empty. */
type Part = TemplateSegment | { readonly kind: "any" };

/** Returns whether a request exists that matches both routes, which are in separate tables. */
export function routesOverlap(one: RouteShape, other: RouteShape): boolean {
  return methodsOverlap(one.httpMethod, other.httpMethod) && templatesOverlap(one.template, other.template);
}

/** Returns whether a path exists that matches both templates. */
export function templatesOverlap(one: PathTemplate, other: PathTemplate): boolean {
  if (one.verb === other.verb) return partsOverlap(one.segments, other.segments);
  if (one.verb !== undefined && other.verb !== undefined) return false;
  const [withVerb, plain] = one.verb === undefined ? [other, one] : [one, other];
  // For a template without a verb, the last segment of "/a:verb" is a value that contains a colon.
  return valuesBeforeVerb(plain.segments, `:${withVerb.verb}`).some((parts) => partsOverlap(withVerb.segments, parts));
}

/** Returns whether a request can match both methods. HEAD falls back to GET (RFC 9110 §9.3.2). */
function methodsOverlap(one: string, other: string): boolean {
  if (one === other || one === anyMethod || other === anyMethod) return true;
  return (one === "GET" && other === "HEAD") || (one === "HEAD" && other === "GET");
}

/**
 * Returns templates for the paths that end with a suffix, after the suffix is removed. A template with a final `**` has
 * two results, because `**` may match the last segment or no segment.
 */
function valuesBeforeVerb(parts: readonly Part[], suffix: string): readonly (readonly Part[])[] {
  const last = parts.at(-1);
  const others = parts.slice(0, -1);
  switch (last?.kind) {
    case undefined:
      return [];
    case "literal":
      return last.text.endsWith(suffix)
        ? [[...others, { kind: "literal", text: last.text.slice(0, -suffix.length) }]]
        : [];
    case "**":
      return [[...parts, { kind: "any" }], ...valuesBeforeVerb(others, suffix)];
    case "*":
    case "any":
      return [[...others, { kind: "any" }]];
  }
}

/** Returns whether a path exists that matches both lists of segments. Each list has at most one `**`. */
function partsOverlap(one: readonly Part[], other: readonly Part[]): boolean {
  const oneAt = one.findIndex(({ kind }) => kind === "**");
  const otherAt = other.findIndex(({ kind }) => kind === "**");
  if (oneAt < 0 && otherAt < 0)
    return one.length === other.length && one.every((part, at) => matchSame(part, other[at]));
  if (oneAt >= 0 && otherAt < 0) return partsOverlap(other, one);
  // The "**" in the second list matches all segments between the segments before and after it.
  const before = oneAt < 0 ? otherAt : Math.min(oneAt, otherAt);
  const oneAfter = one.length - oneAt - 1;
  const otherAfter = other.length - otherAt - 1;
  const after = oneAt < 0 ? otherAfter : Math.min(oneAfter, otherAfter);
  if (oneAt < 0 && one.length < before + after) return false;
  for (let at = 0; at < before; at++) if (!matchSame(one[at], other[at])) return false;
  for (let at = 1; at <= after; at++) if (!matchSame(one.at(-at), other.at(-at))) return false;
  return true;
}

/** Returns whether a segment exists that matches two template segments. Neither template segment is `**`. */
function matchSame(one: Part | undefined, other: Part | undefined): boolean {
  if (one?.kind === "literal" && other?.kind === "literal") return one.text === other.text;
  if (one?.kind === "literal") return one.text !== "" || other?.kind === "any";
  if (other?.kind === "literal") return other.text !== "" || one?.kind === "any";
  return true;
}
