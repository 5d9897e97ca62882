import { type RouteShape, routesOverlap } from "@plantstore/gateway/rest";

/** A REST route, and who serves it. */
export interface OwnedRoute<Owner> extends RouteShape {
  readonly owner: Owner;
}

/** Finds routes of other owners that overlap a given one, without comparing all of them in most cases. */
export class RouteIndex<Owner> {
  readonly #all = new OwnedRoutes<Owner>();
  /** The routes whose first two segments are literals, by these segments. */
  readonly #groups = new Map<string, OwnedRoutes<Owner>>();
  /** The routes with a wildcard in the first two segments. */
  readonly #wild = new OwnedRoutes<Owner>();

  add(route: OwnedRoute<Owner>): void {
    this.#all.add(route);
    const key = keyOf(route);
    if (key === undefined) return this.#wild.add(route);
    const group = this.#groups.get(key) ?? new OwnedRoutes<Owner>();
    this.#groups.set(key, group);
    group.add(route);
  }

  /** Returns the owner of a route that overlaps this one, unless it is `self`. */
  otherOwnerOf(shape: RouteShape, self: Owner): Owner | undefined {
    const key = keyOf(shape);
    if (key === undefined) return this.#all.otherOwnerOf(shape, self);
    return this.#groups.get(key)?.otherOwnerOf(shape, self) ?? this.#wild.otherOwnerOf(shape, self);
  }
}

/** Routes by their owners, so that the routes of one owner, of which there may be thousands, are not compared. */
class OwnedRoutes<Owner> {
  readonly #byOwner = new Map<Owner, RouteShape[]>();

  add({ owner, ...route }: OwnedRoute<Owner>): void {
    const routes = this.#byOwner.get(owner);
    if (routes === undefined) this.#byOwner.set(owner, [route]);
    else routes.push(route);
  }

  otherOwnerOf(shape: RouteShape, self: Owner): Owner | undefined {
    for (const [owner, routes] of this.#byOwner) {
      if (owner !== self && routes.some((route) => routesOverlap(route, shape))) return owner;
    }
    return undefined;
  }
}

/**
 * Returns the first two segments; `undefined` if one is a wildcard. The text after a colon is left out, because it may be
 * the verb of another route.
 */
function keyOf({ template }: RouteShape): string | undefined {
  const segments = template.segments.slice(0, 2);
  const literals = segments.flatMap((segment) => (segment.kind === "literal" ? [segment.text.split(":", 1)[0]] : []));
  return literals.length === segments.length ? literals.join("/") : undefined;
}
