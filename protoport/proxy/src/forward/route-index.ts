import { type RouteShape, routesOverlap } from "@protoport/gateway/rest";

/** A REST route and its owner, which serves the route. */
type OwnedRoute<Owner> = RouteShape & { readonly owner: Owner };

/** The routes whose templates begin with the same segments. */
interface Node<Owner> {
  /** The next segment's nodes, by {@link keyOf}. */
  readonly below: Map<string, Node<Owner>>;
  /** The routes whose last segment is this node. */
  readonly routes: OwnedRoute<Owner>[];
}

/** Finds routes that overlap another route, without comparing all pairs of routes. */
export class RouteIndex<Owner> {
  readonly #root: Node<Owner> = { below: new Map(), routes: [] };

  add(route: OwnedRoute<Owner>): void {
    let node = this.#root;
    for (const segment of route.template.segments) {
      const key = keyOf(segment);
      const next = node.below.get(key) ?? { below: new Map(), routes: [] };
      node.below.set(key, next);
      node = next;
    }
    node.routes.push(route);
  }

  /** Returns an owner other than `self` with a route that overlaps a shape. */
  otherOwnerOf(shape: RouteShape, self: Owner): Owner | undefined {
    const { segments } = shape.template;
    // Each item is a node, and the index of the segment that nodes below must match: Infinity below a `**` of either
    // route. The items are on a stack, because templates may have too many segments for recursion.
    const pending: [node: Node<Owner>, at: number][] = [[this.#root, 0]];
    for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
      const [{ below, routes }, at] = position;
      const segment = segments[at];
      const isRest = at === Infinity || segment?.kind === "**";
      if (isRest || segment === undefined) {
        const found = routes.find((route) => route.owner !== self && routesOverlap(route, shape));
        if (found !== undefined) return found.owner;
      }
      const literals = segment === undefined ? [] : [keyOf(segment), "*"];
      for (const key of isRest || segment?.kind === "*" ? below.keys() : [...literals, "**"]) {
        const next = below.get(key);
        if (next !== undefined) pending.push([next, isRest || key === "**" ? Infinity : at + 1]);
      }
    }
    return undefined;
  }
}

/** Returns a segment's key. A literal's text after a colon is omitted, because it may be another route's verb. */
function keyOf(segment: RouteShape["template"]["segments"][number]): string {
  return segment.kind === "literal" ? `=${segment.text.split(":", 1)[0]}` : segment.kind;
}
