import type { DescMethod } from "@bufbuild/protobuf";
import {
  anyMethod,
  createHttpRuleFinder,
  type ExternalHttpRule,
  fixedPathOf,
  type HttpPattern,
  parsePathTemplate,
  procedureOf,
  type RouteShape,
  routesOverlap,
  RuleProblem,
  selectorOf,
  templatesOverlap,
  toHttpPatterns,
} from "@protoport/gateway/rest";
import type { ServiceOwners } from "../upstreams/index.ts";

/** The RPCs and routes that an upstream claims. */
export interface RouteClaims {
  readonly name: string;
  readonly methods: readonly DescMethod[];
  /** Whether the upstream itself sends its descriptors. Those of the operator take precedence. */
  readonly isReflected: boolean;
  /** The earlier upstream without which the annotated routes are not served yet. */
  readonly waitsFor: string | undefined;
}

/** The RPCs and the paths that the process serves itself, the configuration, and the owners by patterns. */
export interface RouteContext {
  readonly localMethods: readonly DescMethod[];
  readonly reservedPaths: ReadonlySet<string>;
  readonly rules: readonly ExternalHttpRule[];
  readonly omit: readonly string[];
  readonly owners: ServiceOwners;
}

/** A route's owner, which is an upstream's index, this server, or a rule. */
type Owner = number | "this server" | "a rule of the configuration";

/** A message for each route that belongs to another owner, and the RPCs whose annotated routes are not served. */
type HeldRoutes = Readonly<Record<"clashes" | "held", readonly string[]>>;

/**
 * Finds each upstream's annotated routes that could get another owner's calls. The operator's rules come first, then this
 * process's annotations, then those of the operator's descriptors and of upstreams with reflection, in their order. The
 * generator yields after each rule and RPC.
 */
export function* findRouteClashes(
  upstreams: readonly RouteClaims[],
  { localMethods, reservedPaths, rules, omit, owners }: RouteContext,
): Generator<void, readonly HeldRoutes[]> {
  const taken = new RouteIndex<Owner>();
  const methods = upstreams.flatMap((each, at) => each.methods.map((method) => [method, at] as const));
  const procedures = new Map(methods.map(([method, at]) => [procedureOf(method), at]));
  const offering = new Map<string, Owner>(methods.map(([{ parent }, at]) => [parent.typeName, at]));
  for (const { parent } of localMethods) offering.set(parent.typeName, "this server");
  for (const rule of rules) {
    const { selector = "" } = rule;
    const service = selector.slice(0, selector.lastIndexOf("."));
    const ofPattern = offering.get(service) === "this server" ? undefined : owners.ownerOf(service);
    const owner = ofPattern ?? offering.get(service) ?? "a rule of the configuration";
    for (const shape of shapesOf(rule)) taken.add({ ...shape, owner });
    yield;
  }
  const configured = new Set([...rules.map(({ selector = "" }) => selector), ...omit]);
  const findAnnotation = createHttpRuleFinder([], [], true);
  const annotated = (method: DescMethod): readonly AnnotatedRoute[] => {
    const rule = configured.has(selectorOf(method)) ? undefined : findAnnotation(method);
    return rule === undefined ? [] : shapesOf(rule);
  };
  for (const shape of localMethods.flatMap(annotated)) taken.add({ ...shape, owner: "this server" });
  const otherOwnerOf = (at: number, shape: RouteShape): Owner | undefined => {
    const path = fixedPathOf(shape.template) ?? "";
    if (reservedPaths.has(path)) return "this server";
    const ofProcedure = procedures.get(path) ?? at;
    if (ofProcedure !== at) return ofProcedure;
    const owner = taken.otherOwnerOf(shape, at);
    const isForRpcs = rpcMethods.has(shape.httpMethod) && templatesOverlap(shape.template, rpcPath);
    if (owner !== undefined || !isForRpcs) return owner;
    // A Connect call to an RPC that is not known yet could reach this upstream's route.
    const [first] = shape.template.segments;
    return owners.otherOwnerOfPath(at, first?.kind === "literal" ? first.text : undefined);
  };
  const found = upstreams.map((): HeldRoutes => ({ clashes: [], held: [] }));
  for (const [at, each] of [...upstreams.entries()].toSorted(([, a], [, b]) => +a.isReflected - +b.isReflected)) {
    const clashes: string[] = [];
    const routes = new Map<string, readonly AnnotatedRoute[]>();
    for (const method of each.methods) {
      const [selector, shapes] = [selectorOf(method), annotated(method)];
      if (shapes.length > 0) routes.set(selector, shapes);
      const clashesOf = (shape: AnnotatedRoute): readonly string[] => {
        const owner = otherOwnerOf(at, shape);
        const name = typeof owner === "number" ? upstreams[owner]?.name : owner;
        return name === undefined
          ? []
          : [`route ${shape.httpMethod} ${shape.pathTemplate} of ${selector} belongs to ${name}`];
      };
      for (const clash of each.waitsFor === undefined ? shapes.flatMap(clashesOf) : []) clashes.push(clash);
      yield;
    }
    if (each.waitsFor !== undefined || clashes.length > 0) found[at] = { clashes, held: [...routes.keys()] };
    else for (const shape of [...routes.values()].flat()) taken.add({ ...shape, owner: at });
  }
  return found;
}

type AnnotatedRoute = HttpPattern & RouteShape;

/** Returns a rule's routes, without invalid ones, which the compilation reports. */
function shapesOf(rule: ExternalHttpRule): readonly AnnotatedRoute[] {
  const patterns = ifValid(() => toHttpPatterns(rule));
  return patterns.flatMap((each) => ifValid(() => [{ ...each, template: parsePathTemplate(each.pathTemplate) }]));
}

function ifValid<Item>(read: () => readonly Item[]): readonly Item[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof RuleProblem) return [];
    throw error;
  }
}

/** A template for RPC paths, `/package.Service/Method`, and the HTTP methods with which they are called. */
const rpcPath = parsePathTemplate("/*/*");
const rpcMethods: ReadonlySet<string> = new Set([anyMethod, "POST", "GET"]);

/** A REST route and its owner, which serves the route. */
type OwnedRoute<RouteOwner> = RouteShape & { readonly owner: RouteOwner };

/** The routes whose templates begin with the same segments. */
interface IndexNode<RouteOwner> {
  /** The next segment's nodes, by {@link segmentKeyOf}. */
  readonly below: Map<string, IndexNode<RouteOwner>>;
  /** The routes whose last segment is this node. */
  readonly routes: OwnedRoute<RouteOwner>[];
}

/** Finds routes that overlap another route, without comparing all pairs of routes. */
export class RouteIndex<RouteOwner> {
  readonly #root: IndexNode<RouteOwner> = { below: new Map(), routes: [] };

  add(route: OwnedRoute<RouteOwner>): void {
    let node = this.#root;
    for (const segment of route.template.segments) {
      const key = segmentKeyOf(segment);
      const next = node.below.get(key) ?? { below: new Map(), routes: [] };
      node.below.set(key, next);
      node = next;
    }
    node.routes.push(route);
  }

  /** Returns an owner other than `self` with a route that overlaps a shape. */
  otherOwnerOf(shape: RouteShape, self: RouteOwner): RouteOwner | undefined {
    const { segments } = shape.template;
    // Each item is a node, and the index of the segment that nodes below must match: Infinity below a `**` of either
    // route. The items are on a stack, because templates may have too many segments for recursion.
    const pending: [node: IndexNode<RouteOwner>, at: number][] = [[this.#root, 0]];
    for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
      const [{ below, routes }, at] = position;
      const segment = segments[at];
      const isRest = at === Infinity || segment?.kind === "**";
      if (isRest || segment === undefined) {
        const found = routes.find((route) => route.owner !== self && routesOverlap(route, shape));
        if (found !== undefined) return found.owner;
      }
      const literals = segment === undefined ? [] : [segmentKeyOf(segment), "*"];
      for (const key of isRest || segment?.kind === "*" ? below.keys() : [...literals, "**"]) {
        const next = below.get(key);
        if (next !== undefined) pending.push([next, isRest || key === "**" ? Infinity : at + 1]);
      }
    }
    return undefined;
  }
}

/** Returns a segment's key. A literal's text after a colon is omitted, because it may be another route's verb. */
function segmentKeyOf(segment: RouteShape["template"]["segments"][number]): string {
  return segment.kind === "literal" ? `=${segment.text.split(":", 1)[0]}` : segment.kind;
}
