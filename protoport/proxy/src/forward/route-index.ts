import { type RouteShape, routesOverlap } from "@protoport/gateway/rest";

/** A REST route and its owner, which serves the route. */
export interface OwnedRoute<Owner> extends RouteShape {
  readonly owner: Owner;
}

type Segment = RouteShape["template"]["segments"][number];

/** The routes whose templates begin with the same segments. */
interface Node<Owner> {
  /** The next segment's nodes, by {@link keyOf}. */
  readonly children: Map<string, Node<Owner>>;
  /** The routes whose last segment is this node. */
  readonly routes: OwnedRoute<Owner>[];
  /** The owners of all routes at this node and below. */
  readonly owners: Set<Owner>;
}

/** Finds routes that overlap another route, without comparing all pairs of routes. */
export class RouteIndex<Owner> {
  readonly #root: Node<Owner> = createNode();

  add(route: OwnedRoute<Owner>): void {
    let node = this.#root;
    node.owners.add(route.owner);
    for (const segment of route.template.segments) {
      const key = keyOf(segment);
      const child = node.children.get(key) ?? createNode();
      node.children.set(key, child);
      child.owners.add(route.owner);
      node = child;
    }
    node.routes.push(route);
  }

  /** Returns an owner other than `self` with a route that overlaps a shape. */
  otherOwnerOf(shape: RouteShape, self: Owner): Owner | undefined {
    for (const route of similarRoutes(this.#root, shape.template.segments, self))
      if (routesOverlap(route, shape)) return route.owner;
    return undefined;
  }
}

function createNode<Owner>(): Node<Owner> {
  return { children: new Map(), routes: [], owners: new Set() };
}

/** Returns a segment's key. A literal's text after a colon is omitted, because it may be another route's verb. */
function keyOf(segment: Segment): string {
  return segment.kind === "literal" ? `=${segment.text.split(":", 1)[0]}` : segment.kind;
}

/** A search position: a node, and the template segment that the nodes below must match. */
interface Position<Owner> {
  readonly node: Node<Owner>;
  /** The next segment's index. Undefined if a `**` in either route matches all segments below the node. */
  readonly at: number | undefined;
}

/**
 * Yields other owners' routes that may overlap a template with these `segments`. Skips nodes that have only routes from
 * `self`, so that an upstream with many routes is not compared with itself.
 */
function* similarRoutes<Owner>(
  root: Node<Owner>,
  segments: readonly Segment[],
  self: Owner,
): Generator<OwnedRoute<Owner>> {
  // Positions are on a stack, because templates may have too many segments for recursion.
  const pending: Position<Owner>[] = [{ node: root, at: 0 }];
  for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
    const { node } = position;
    const isOfSelf = node.owners.size === 1 && node.owners.has(self);
    if (isOfSelf) continue;
    const isRest = position.at !== undefined && segments[position.at]?.kind === "**";
    const at = isRest ? undefined : position.at;
    if (at === undefined || at === segments.length) yield* node.routes.filter(({ owner }) => owner !== self);
    // Pushed in reverse, so that nodes are visited in the order of `positionsBelow`.
    for (const below of positionsBelow(node, at, segments).toReversed()) pending.push(below);
  }
}

/** Returns the nodes below a node that match the next segment. */
function positionsBelow<Owner>(
  { children }: Node<Owner>,
  at: number | undefined,
  segments: readonly Segment[],
): readonly Position<Owner>[] {
  if (at === undefined) return [...children.values()].map((node) => ({ node, at }));
  const segment = segments[at];
  const rest = children.get("**");
  const positions: Position<Owner>[] = rest === undefined ? [] : [{ node: rest, at: undefined }];
  if (segment?.kind === "*") {
    for (const [key, node] of children) if (key !== "**") positions.push({ node, at: at + 1 });
  } else if (segment !== undefined) {
    for (const key of [keyOf(segment), "*"]) {
      const node = children.get(key);
      if (node !== undefined) positions.push({ node, at: at + 1 });
    }
  }
  return positions;
}
