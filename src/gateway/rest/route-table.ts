/**
 * Which route is this path? A trie of path segments, walked with backtracking: a literal before `*` before
 * `**`, in whatever order the routes were declared.
 */
import type { PathTemplate } from "./path-template.ts";
import { isMultiSegment } from "./path-template.ts";
import { decodePercent, decodePercentExceptSlash } from "./percent.ts";
import type { RawPath } from "./raw-path.ts";
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

interface Route<Target> {
  readonly target: Target;
  readonly template: PathTemplate;
  /** For each variable whether it keeps `%2F`. */
  readonly multiSegment: readonly boolean[];
}

/** The routes that end at one place: by verb (`""` for none), then by HTTP method. */
type Ends<Target> = Map<string, Map<string, Route<Target>>>;

interface Node<Target> {
  readonly literals: Map<string, Node<Target>>;
  /** The child for `*`. */
  one: Node<Target> | undefined;
  readonly ends: Ends<Target>;
  /** Routes whose last segment is `**`. */
  readonly rests: Ends<Target>;
}

/** A path as it is walked: without the verb that is being tried. */
interface Walk {
  readonly segments: readonly string[];
  readonly verb: string;
}

/** Looks up routes by HTTP method and raw path. Filled once at start, then only read. */
export class RouteTable<Target> {
  readonly #root: Node<Target> = createNode();
  readonly #verbs = new Set<string>();

  /**
   * Adds a route.
   *
   * @returns the target that already has this method and this shape of path, in which case nothing is added
   */
  add(httpMethod: string, template: PathTemplate, target: Target): Target | undefined {
    const verb = template.verb ?? "";
    let node = this.#root;
    let ends = node.ends;
    for (const segment of template.segments) {
      if (segment.kind === "**") {
        ends = node.rests;
      } else {
        node = segment.kind === "*" ? (node.one ??= createNode()) : literalChild(node, segment.text);
        ends = node.ends;
      }
    }
    const byMethod = getOrAdd(ends, verb, () => new Map<string, Route<Target>>());
    const taken = byMethod.get(httpMethod);
    if (taken !== undefined) return taken.target;
    const multiSegment = template.variables.map((variable) => isMultiSegment(template, variable));
    byMethod.set(httpMethod, { target, template, multiSegment });
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
    const withVerb = this.#splitVerb(split);
    const whole: Walk = { segments: split.decoded, verb: "" };
    const route =
      (withVerb === undefined ? undefined : this.#find(httpMethod, withVerb)) ?? this.#find(httpMethod, whole);
    if (route !== undefined) {
      const captures = captureVariables(route, split, route.template.verb === undefined ? undefined : withVerb);
      return { kind: "route", target: route.target, captures };
    }
    const allowed = new Set<string>();
    if (withVerb !== undefined) collectMethods(this.#root, withVerb, 0, allowed);
    collectMethods(this.#root, whole, 0, allowed);
    return allowed.size === 0 ? { kind: "not-found" } : { kind: "method-not-allowed", allow: sortMethods(allowed) };
  }

  // A colon separates a verb only where a template has that verb; "a:b" is an ordinary value elsewhere.
  #splitVerb(path: RawPath): Walk | undefined {
    if (this.#verbs.size === 0) return undefined;
    const last = path.raw.at(-1) ?? "";
    const colon = last.lastIndexOf(":");
    if (colon < 0) return undefined;
    const verb = decodePercent(last.slice(colon + 1)) ?? "";
    if (!this.#verbs.has(verb)) return undefined;
    return { segments: [...path.decoded.slice(0, -1), decodePercent(last.slice(0, colon)) ?? ""], verb };
  }

  #find(httpMethod: string, walk: Walk): Route<Target> | undefined {
    return findRoute(this.#root, walk, 0, httpMethod);
  }
}

function findRoute<Target>(
  node: Node<Target>,
  walk: Walk,
  index: number,
  httpMethod: string,
): Route<Target> | undefined {
  const { segments, verb } = walk;
  const segment = segments[index];
  if (segment === undefined) return pickRoute(node.ends, verb, httpMethod) ?? pickRoute(node.rests, verb, httpMethod);
  const literal = node.literals.get(segment);
  const byLiteral = literal === undefined ? undefined : findRoute(literal, walk, index + 1, httpMethod);
  if (byLiteral !== undefined) return byLiteral;
  // An empty segment is no resource: "/plants/" has no id.
  const byOne = node.one === undefined || segment === "" ? undefined : findRoute(node.one, walk, index + 1, httpMethod);
  return byOne ?? pickRoute(node.rests, verb, httpMethod);
}

function pickRoute<Target>(ends: Ends<Target>, verb: string, httpMethod: string): Route<Target> | undefined {
  const byMethod = ends.get(verb);
  if (byMethod === undefined) return undefined;
  const route = byMethod.get(httpMethod);
  if (route !== undefined) return route;
  return (httpMethod === "HEAD" ? byMethod.get("GET") : undefined) ?? byMethod.get(anyMethod);
}

function collectMethods<Target>(node: Node<Target>, walk: Walk, index: number, into: Set<string>): void {
  const { segments, verb } = walk;
  for (const httpMethod of node.rests.get(verb)?.keys() ?? []) into.add(httpMethod);
  const segment = segments[index];
  if (segment === undefined) {
    for (const httpMethod of node.ends.get(verb)?.keys() ?? []) into.add(httpMethod);
    return;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) collectMethods(literal, walk, index + 1, into);
  if (node.one !== undefined && segment !== "") collectMethods(node.one, walk, index + 1, into);
}

function sortMethods(allowed: Set<string>): readonly string[] {
  if (allowed.has("GET")) allowed.add("HEAD");
  return [...allowed].toSorted();
}

function captureVariables<Target>(route: Route<Target>, path: RawPath, withVerb: Walk | undefined): readonly string[] {
  const { variables } = route.template;
  const captures: string[] = [];
  for (let at = 0; at < variables.length; at++) {
    const variable = variables[at];
    if (variable === undefined) continue;
    const { start } = variable;
    if (route.multiSegment[at] !== true) {
      captures.push((withVerb?.segments ?? path.decoded)[start] ?? "");
      continue;
    }
    // Only a variable that ends in "**" ends where the path does.
    const rest = route.template.segments[variable.end - 1]?.kind === "**";
    const raw = path.raw.slice(start, rest ? undefined : variable.end).join("/");
    const last = rest || variable.end === path.raw.length;
    const value = withVerb !== undefined && last ? raw.slice(0, raw.lastIndexOf(":")) : raw;
    captures.push(decodePercentExceptSlash(value) ?? "");
  }
  return captures;
}

function createNode<Target>(): Node<Target> {
  return { literals: new Map(), one: undefined, ends: new Map(), rests: new Map() };
}

function literalChild<Target>(node: Node<Target>, text: string): Node<Target> {
  return getOrAdd(node.literals, text, createNode<Target>);
}

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
