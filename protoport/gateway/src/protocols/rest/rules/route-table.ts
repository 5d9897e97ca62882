/**
 * Finds the binding for a path in a trie of path segments, with backtracking. A literal takes precedence over `*`, and
 * `*` takes precedence over `**`. The declaration order has no effect.
 */

import type { HttpPattern } from "./http-rule.ts";
import { isMultiSegment, type PathTemplate, printTemplateLiteral, type TemplateSegment } from "./path-template.ts";
import { decodePercent, decodePercentExceptSlash, splitRawPath } from "./raw-path.ts";

/** The result of a match by method and path. */
export type RouteMatch<Binding> =
  /** A binding has matched. `captures` has the decoded value for each variable in the path template. */
  | { readonly kind: "binding"; readonly binding: Binding; readonly captures: readonly string[] }
  /** Only routes with other methods match the path. The status is 405, and `allow` is the header `Allow`. */
  | { readonly kind: "method-not-allowed"; readonly allow: string }
  | { readonly kind: "not-found" }
  /** The path is not valid, so the status is 400. */
  | { readonly kind: "malformed"; readonly message: string };

/** The method of a rule that matches every HTTP method, from the custom kind `*` in google/api/http.proto. */
export const anyMethod = "*";

interface Route<Binding> {
  readonly httpMethod: string;
  /** The verb after the colon, or `""` without a verb. */
  readonly verb: string;
  readonly binding: Binding;
  readonly template: PathTemplate;
  readonly captures: readonly Capture[];
  /** The index of `**` in the template, or the number of segments in a template without `**`. */
  readonly wildcardIndex: number;
}

/** The position of a variable's value in the segments of the template. */
interface Capture {
  readonly start: number;
  readonly end: number;
  readonly decode: "one" | "many" | "many-with-slash";
}

/**
 * A trie node. A large table does not fit the CPU caches, so nodes are small. Most nodes have one child or one route.
 * Routes are in an array, and the map of literals is only created for the first literal child.
 */
interface RouteNode<Binding> {
  /** The node's literal as {@link printTemplateLiteral} prints it, or `""` for wildcards and the root. */
  readonly printed: string;
  literals: Map<string, RouteNode<Binding>> | undefined;
  /** The child for `*`. */
  anySegment: RouteNode<Binding> | undefined;
  /** The child for `**`. */
  anySegments: RouteNode<Binding> | undefined;
  /** Number of segments in the longest route below this node. */
  maxHeight: number;
  /** The routes that end at this node. Each method and verb has at most one route. */
  readonly routes: Route<Binding>[];
}

/** One search of the trie. */
interface Walk {
  /** The path's segments as sent, without {@link verb}. */
  readonly raw: readonly string[];
  readonly decoded: readonly string[];
  readonly verb: string;
  /** Whether literals match only as printed by {@link printTemplateLiteral}. */
  readonly literalsAsSent: boolean;
  /** If set, the search adds the methods of all routes for the path to this set instead of choosing a route. */
  readonly allowed?: Set<string>;
}

/** Finds bindings by HTTP method and raw path. The table is filled at start, and read-only afterwards. */
export class RouteTable<Binding> {
  readonly #root: RouteNode<Binding> = createNode();
  readonly #customVerbs = new Set<string>();
  readonly #decodesSlash: boolean;

  /** @param decodesSlash - whether variables with several segments decode `%2F` instead of keeping it as sent */
  constructor(decodesSlash = false) {
    this.#decodesSlash = decodesSlash;
  }

  /** Adds a route, or returns the existing binding with the same method and path shape. */
  add(httpMethod: string, template: PathTemplate, binding: Binding): Binding | undefined {
    const { segments, verb = "" } = template;
    let node = this.#root;
    for (const [index, segment] of segments.entries()) {
      node.maxHeight = Math.max(node.maxHeight, segments.length - index);
      if (segment.kind === "literal") node = literalChild(node, segment.text);
      else node = segment.kind === "*" ? (node.anySegment ??= createNode()) : (node.anySegments ??= createNode());
    }
    const existing = routeOf(node, verb, httpMethod);
    if (existing === undefined) node.routes.push(createRoute(httpMethod, template, binding, this.#decodesSlash));
    if (verb !== "") this.#customVerbs.add(verb);
    return existing?.binding;
  }

  /**
   * Finds a request's binding. The method is part of the search, so `DELETE /a/me` matches `DELETE /a/{id}` even if
   * `GET /a/me` is declared. HEAD falls back to GET for paths without a HEAD route (RFC 9110 §9.3.2).
   *
   * @param httpMethod - the case-sensitive method as sent
   * @param path - the path without the query, with percent escapes as sent
   */
  match(httpMethod: string, path: string, literalsAsSent = false): RouteMatch<Binding> {
    const split = splitRawPath(path);
    if (split.kind !== "segments") return split;
    const fullPath: Walk = { raw: split.raw, decoded: split.decoded, verb: "", literalsAsSent };
    const withVerb = this.#customVerbs.size === 0 ? undefined : splitVerb(fullPath, this.#customVerbs);
    return (
      (withVerb === undefined ? undefined : this.#matchVerb(httpMethod, withVerb)) ??
      this.#matchWalk(httpMethod, fullPath) ??
      this.#mismatch(withVerb === undefined ? [fullPath] : [withVerb, fullPath])
    );
  }

  // The path "/orders/:cancel" lacks the id. If a template has the verb "cancel", this path must not match a template
  // for an order named ":cancel" instead.
  #matchVerb(httpMethod: string, walk: Walk): RouteMatch<Binding> | undefined {
    const found = this.#matchWalk(httpMethod, walk);
    if (found !== undefined || walk.decoded.at(-1) !== "") return found;
    const withValue = { ...walk, decoded: [...walk.decoded.slice(0, -1), nonLiteral] };
    return this.#mismatch([withValue]).kind === "not-found" ? undefined : { kind: "not-found" };
  }

  #matchWalk(httpMethod: string, walk: Walk): RouteMatch<Binding> | undefined {
    const route = findRoute(this.#root, walk, 0, httpMethod);
    if (route === undefined) return undefined;
    return { kind: "binding", binding: route.binding, captures: captureVariables(route, walk) };
  }

  #mismatch(walks: readonly Walk[]): RouteMatch<Binding> {
    const allowed = new Set<string>();
    for (const walk of walks) findRoute(this.#root, { ...walk, allowed }, 0, anyMethod);
    if (allowed.size === 0) return { kind: "not-found" };
    if (allowed.has("GET")) allowed.add("HEAD");
    return { kind: "method-not-allowed", allow: [...allowed].toSorted().join(", ") };
  }
}

// A segment that equals no literal. Strings decoded from UTF-8 never contain a lone surrogate.
const nonLiteral = "\ud800";

// A colon separates a verb only if a template has that verb. Otherwise, a segment such as "a:b" is an ordinary value.
function splitVerb(fullPath: Walk, verbs: ReadonlySet<string>): Walk | undefined {
  const lastSegment = fullPath.raw.at(-1) ?? "";
  const colon = lastSegment.lastIndexOf(":");
  if (colon < 0) return undefined;
  const sentVerb = lastSegment.slice(colon + 1);
  const verb = decodePercent(sentVerb) ?? "";
  if (!verbs.has(verb) || (fullPath.literalsAsSent && sentVerb !== printTemplateLiteral(verb))) return undefined;
  const value = lastSegment.slice(0, colon);
  const raw = [...fullPath.raw.slice(0, -1), value];
  return { ...fullPath, raw, decoded: [...fullPath.decoded.slice(0, -1), decodePercent(value) ?? ""], verb };
}

function findRoute<Binding>(
  node: RouteNode<Binding>,
  walk: Walk,
  index: number,
  httpMethod: string,
): Route<Binding> | undefined {
  const segment = walk.decoded[index];
  let route: Route<Binding> | undefined;
  if (segment === undefined) {
    route = pickRoute(node, walk, httpMethod);
  } else {
    const literal = node.literals?.get(segment);
    if (literal !== undefined && (!walk.literalsAsSent || walk.raw[index] === literal.printed)) {
      route = findRoute(literal, walk, index + 1, httpMethod);
    }
    // The wildcard "*" does not match an empty segment. For example, "/orders/" has no id.
    if (route === undefined && node.anySegment !== undefined && segment !== "") {
      route = findRoute(node.anySegment, walk, index + 1, httpMethod);
    }
  }
  if (route !== undefined || node.anySegments === undefined) return route;
  // The longest template after "**" is tried first, because a template that specifies more segments takes precedence.
  const { anySegments } = node;
  for (let at = Math.max(index, walk.decoded.length - anySegments.maxHeight); at <= walk.decoded.length; at++) {
    route = findRoute(anySegments, walk, at, httpMethod);
    if (route !== undefined) return route;
  }
  return undefined;
}

function pickRoute<Binding>(
  node: RouteNode<Binding>,
  { verb, allowed }: Walk,
  httpMethod: string,
): Route<Binding> | undefined {
  if (allowed === undefined) {
    const route = routeOf(node, verb, httpMethod) ?? (httpMethod === "HEAD" ? routeOf(node, verb, "GET") : undefined);
    return route ?? routeOf(node, verb, anyMethod);
  }
  for (const route of node.routes) if (route.verb === verb) allowed.add(route.httpMethod);
  return undefined;
}

function routeOf<Binding>(node: RouteNode<Binding>, verb: string, httpMethod: string): Route<Binding> | undefined {
  return node.routes.find((route) => route.httpMethod === httpMethod && route.verb === verb);
}

function createRoute<Binding>(
  httpMethod: string,
  template: PathTemplate,
  binding: Binding,
  decodesSlash: boolean,
): Route<Binding> {
  const { segments, variables, verb = "" } = template;
  const wildcardAt = segments.findIndex((segment) => segment.kind === "**");
  const captures = variables.map((variable): Capture => {
    const { start, end } = variable;
    if (!isMultiSegment(template, variable)) return { start, end, decode: "one" };
    return { start, end, decode: decodesSlash ? "many-with-slash" : "many" };
  });
  return {
    httpMethod,
    verb,
    binding,
    template,
    captures,
    wildcardIndex: wildcardAt < 0 ? segments.length : wildcardAt,
  };
}

function captureVariables<Binding>(
  { captures, wildcardIndex, template }: Route<Binding>,
  walk: Walk,
): readonly string[] {
  // A template has at most one "**", so the path length determines how many segments `**` matches.
  const lengthDifference = walk.raw.length - template.segments.length;
  // Unlike map(), push() would reserve capacity for sixteen more items until the call ends.
  return captures.map(({ start, end, decode }) => {
    const from = start > wildcardIndex ? start + lengthDifference : start;
    if (decode === "one") return walk.decoded[from] ?? "";
    const to = end > wildcardIndex ? end + lengthDifference : end;
    const segments = decode === "many" ? walk.raw : walk.decoded;
    const text = segments.slice(from, to).join("/");
    return decode === "many" ? decodePercentExceptSlash(text) : text;
  });
}

function createNode<Binding>(printed = ""): RouteNode<Binding> {
  return { printed, literals: undefined, anySegment: undefined, anySegments: undefined, maxHeight: 0, routes: [] };
}

function literalChild<Binding>(node: RouteNode<Binding>, text: string): RouteNode<Binding> {
  node.literals ??= new Map();
  const child = node.literals.get(text) ?? createNode(printTemplateLiteral(text));
  node.literals.set(text, child);
  return child;
}

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
