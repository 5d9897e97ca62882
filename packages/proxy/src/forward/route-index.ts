import { type RouteShape, routesOverlap } from "@plantstore/gateway/rest";

/** A REST route, and who serves it. */
export interface OwnedRoute<Owner> extends RouteShape {
  readonly owner: Owner;
}

/** Finds routes that overlap a given one, without comparing all of them in most cases. */
export class RouteIndex<Owner> {
  readonly #all: OwnedRoute<Owner>[] = [];
  /** The routes whose first two segments are literals, by these segments. */
  readonly #groups = new Map<string, OwnedRoute<Owner>[]>();
  /** The routes with a wildcard in the first two segments. */
  readonly #wild: OwnedRoute<Owner>[] = [];

  add(route: OwnedRoute<Owner>): void {
    this.#all.push(route);
    const key = keyOf(route);
    if (key === undefined) this.#wild.push(route);
    else this.#groups.set(key, [...(this.#groups.get(key) ?? []), route]);
  }

  /** Returns the owner of a route that overlaps this one, unless it is `self`. */
  otherOwnerOf(shape: RouteShape, self: Owner): Owner | undefined {
    const key = keyOf(shape);
    const isOther = (route: OwnedRoute<Owner>): boolean => route.owner !== self && routesOverlap(route, shape);
    if (key === undefined) return this.#all.find(isOther)?.owner;
    return (this.#groups.get(key)?.find(isOther) ?? this.#wild.find(isOther))?.owner;
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
