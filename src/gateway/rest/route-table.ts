/**
 * Which route is this path? A trie of path segments, walked with backtracking: a literal before `*` before
 * `**`, in whatever order the routes were declared.
 */
import type { PathTemplate, TemplateVariable } from "./path-template.ts";
import { isMultiSegment } from "./path-template.ts";
import { decodePercent, decodePercentExceptSlash } from "./percent.ts";
import { splitRawPath } from "./raw-path.ts";

/** What a request line leads to. */
export type RouteMatch<Target> =
  /** The route, and the value of each of its template's variables, decoded. */
  | { readonly kind: "route"; readonly target: Target; readonly captures: readonly string[] }
  /** The path is there, the method is not; `allow` has the methods that are, sorted. */
  | { readonly kind: "method-not-allowed"; readonly allow: readonly string[] }
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string };

/** Stands for every HTTP method: the custom kind `*` of google/api/http.proto. */
export const anyMethod = "*";

/** What becomes of `%2F` in a variable of several segments. */
export type EscapedSlash = "kept" | "decoded";

interface Route<Target> {
  readonly httpMethod: string;
  /** `""` for none. */
  readonly verb: string;
  readonly target: Target;
  readonly template: PathTemplate;
  readonly captures: readonly Capture[];
  /** Index of the template's `**`, behind its end when it has none. */
  readonly restAt: number;
}

/** Where a variable's value is, counted in segments of the template. */
interface Capture {
  readonly start: number;
  readonly end: number;
  readonly decode: "one" | "many" | "many-with-slash";
}

/**
 * A place in the trie. Most have one child or one route, and a large table does not fit the processor's
 * caches: so there is no map where a short array does, and none at all where it would be empty.
 */
interface Node<Target> {
  literals: Map<string, Node<Target>> | undefined;
  /** The child for `*`. */
  one: Node<Target> | undefined;
  /** The child for `**`. */
  rest: Node<Target> | undefined;
  /** Most segments that a route has below this node. */
  heightMax: number;
  /** The routes that end here: a few methods, perhaps with verbs. */
  readonly routes: Route<Target>[];
}

/** A path as it is walked: without the verb that is being tried. */
interface Walk {
  readonly raw: readonly string[];
  readonly decoded: readonly string[];
  readonly verb: string;
}

/** Looks up routes by HTTP method and raw path. Filled once at start, then only read. */
export class RouteTable<Target> {
  readonly #root: Node<Target> = createNode();
  readonly #verbs = new Set<string>();
  readonly #slash: EscapedSlash;

  constructor(slash: EscapedSlash = "kept") {
    this.#slash = slash;
  }

  /**
   * Adds a route.
   *
   * @returns the target that already has this method and this shape of path, in which case nothing is added
   */
  add(httpMethod: string, template: PathTemplate, target: Target): Target | undefined {
    const { segments, verb = "" } = template;
    let node = this.#root;
    for (const [index, segment] of segments.entries()) {
      node.heightMax = Math.max(node.heightMax, segments.length - index);
      if (segment.kind === "literal") node = literalChild(node, segment.text);
      else node = segment.kind === "*" ? (node.one ??= createNode()) : (node.rest ??= createNode());
    }
    const taken = routeOf(node, verb, httpMethod);
    if (taken !== undefined) return taken.target;
    node.routes.push(createRoute(httpMethod, template, target, this.#slash));
    if (verb !== "") this.#verbs.add(verb);
    return undefined;
  }

  /**
   * Finds the route of a request, by its raw path: no query, percent escapes as they were sent.
   *
   * The method takes part in the search: `DELETE /a/me` reaches `DELETE /a/{id}` also where only
   * `GET /a/me` is declared. HEAD is answered by GET where it has no route of its own (RFC 9110 §9.3.2).
   */
  match(httpMethod: string, path: string): RouteMatch<Target> {
    const split = splitRawPath(path);
    if (split.kind !== "segments") return split;
    const whole: Walk = { raw: split.raw, decoded: split.decoded, verb: "" };
    const withVerb = this.#verbs.size === 0 ? undefined : splitVerb(whole, this.#verbs);
    return (
      (withVerb === undefined ? undefined : this.#matchWalk(httpMethod, withVerb)) ??
      this.#matchWalk(httpMethod, whole) ??
      this.#matchNothing(withVerb === undefined ? [whole] : [withVerb, whole])
    );
  }

  #matchWalk(httpMethod: string, walk: Walk): RouteMatch<Target> | undefined {
    const route = findRoute(this.#root, walk, 0, httpMethod);
    if (route === undefined) return undefined;
    return { kind: "route", target: route.target, captures: captureVariables(route, walk) };
  }

  #matchNothing(walks: readonly Walk[]): RouteMatch<Target> {
    const allowed = new Set<string>();
    for (const walk of walks) collectMethods(this.#root, walk, 0, allowed);
    if (allowed.size === 0) return { kind: "not-found" };
    if (allowed.has("GET")) allowed.add("HEAD");
    return { kind: "method-not-allowed", allow: [...allowed].toSorted() };
  }
}

// A colon separates a verb only where a template has that verb; "a:b" is an ordinary value elsewhere.
function splitVerb(whole: Walk, verbs: ReadonlySet<string>): Walk | undefined {
  const last = whole.raw.at(-1) ?? "";
  const colon = last.lastIndexOf(":");
  if (colon < 0) return undefined;
  const verb = decodePercent(last.slice(colon + 1)) ?? "";
  if (!verbs.has(verb)) return undefined;
  const value = last.slice(0, colon);
  const raw = [...whole.raw.slice(0, -1), value];
  return { raw, decoded: [...whole.decoded.slice(0, -1), decodePercent(value) ?? ""], verb };
}

function findRoute<Target>(
  node: Node<Target>,
  walk: Walk,
  index: number,
  httpMethod: string,
): Route<Target> | undefined {
  const segment = walk.decoded[index];
  let route: Route<Target> | undefined;
  if (segment === undefined) {
    route = pickRoute(node, walk.verb, httpMethod);
  } else {
    const literal = node.literals?.get(segment);
    if (literal !== undefined) route = findRoute(literal, walk, index + 1, httpMethod);
    // An empty segment is no resource: "/plants/" has no id.
    if (route === undefined && node.one !== undefined && segment !== "") {
      route = findRoute(node.one, walk, index + 1, httpMethod);
    }
  }
  if (route !== undefined || node.rest === undefined) return route;
  // "**" gives back as many segments as the longest template behind it can match: the more of the path is
  // spelled out, the more exact is the route.
  const { rest } = node;
  for (let at = Math.max(index, walk.decoded.length - rest.heightMax); at <= walk.decoded.length; at++) {
    route = findRoute(rest, walk, at, httpMethod);
    if (route !== undefined) return route;
  }
  return undefined;
}

function pickRoute<Target>(node: Node<Target>, verb: string, httpMethod: string): Route<Target> | undefined {
  if (node.routes.length === 0) return undefined;
  const route = routeOf(node, verb, httpMethod);
  if (route !== undefined) return route;
  return (httpMethod === "HEAD" ? routeOf(node, verb, "GET") : undefined) ?? routeOf(node, verb, anyMethod);
}

function routeOf<Target>(node: Node<Target>, verb: string, httpMethod: string): Route<Target> | undefined {
  for (const route of node.routes) {
    if (route.httpMethod === httpMethod && route.verb === verb) return route;
  }
  return undefined;
}

function collectMethods<Target>(node: Node<Target>, walk: Walk, index: number, into: Set<string>): void {
  const segment = walk.decoded[index];
  if (segment === undefined) {
    for (const route of node.routes) if (route.verb === walk.verb) into.add(route.httpMethod);
  } else {
    const literal = node.literals?.get(segment);
    if (literal !== undefined) collectMethods(literal, walk, index + 1, into);
    if (node.one !== undefined && segment !== "") collectMethods(node.one, walk, index + 1, into);
  }
  const { rest } = node;
  if (rest === undefined) return;
  for (let at = Math.max(index, walk.decoded.length - rest.heightMax); at <= walk.decoded.length; at++) {
    collectMethods(rest, walk, at, into);
  }
}

function createRoute<Target>(
  httpMethod: string,
  template: PathTemplate,
  target: Target,
  slash: EscapedSlash,
): Route<Target> {
  const { segments, variables } = template;
  const restAt = segments.findIndex((segment) => segment.kind === "**");
  return {
    httpMethod,
    verb: template.verb ?? "",
    target,
    template,
    restAt: restAt < 0 ? segments.length : restAt,
    captures: variables.map((variable) => ({
      start: variable.start,
      end: variable.end,
      decode: decoderOf(template, variable, slash),
    })),
  };
}

function captureVariables<Target>(route: Route<Target>, walk: Walk): readonly string[] {
  const { captures, restAt, template } = route;
  // A template has one "**" at most, so the length of the path says how many segments it stands for.
  const shift = walk.raw.length - template.segments.length;
  const values: string[] = [];
  for (const { start, end, decode } of captures) {
    const from = start > restAt ? start + shift : start;
    if (decode === "one") {
      values.push(walk.decoded[from] ?? "");
      continue;
    }
    const to = end > restAt ? end + shift : end;
    const segments = decode === "many" ? walk.raw : walk.decoded;
    const text = segments.slice(from, to).join("/");
    values.push(decode === "many" ? (decodePercentExceptSlash(text) ?? "") : text);
  }
  return values;
}

function decoderOf(template: PathTemplate, variable: TemplateVariable, slash: EscapedSlash): Capture["decode"] {
  if (!isMultiSegment(template, variable)) return "one";
  return slash === "decoded" ? "many-with-slash" : "many";
}

function createNode<Target>(): Node<Target> {
  return { literals: undefined, one: undefined, rest: undefined, heightMax: 0, routes: [] };
}

function literalChild<Target>(node: Node<Target>, text: string): Node<Target> {
  node.literals ??= new Map();
  const known = node.literals.get(text);
  if (known !== undefined) return known;
  const child = createNode<Target>();
  node.literals.set(text, child);
  return child;
}
