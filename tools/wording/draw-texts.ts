import { createHash } from "node:crypto";

/**
 * Draws so many items, each at most once, in the order of a hash: the same for the same seed, and an item that is added or
 * removed leaves the draw of the others alone.
 *
 * @param keyOf - what tells an item from others
 * @param seed - any string
 */
export function drawTexts<T>(items: readonly T[], keyOf: (item: T) => string, count: number, seed: string): T[] {
  const byKey = new Map(items.map((item) => [keyOf(item), item]));
  return [...byKey]
    .map(([key, item]) => ({ item, rank: createHash("sha256").update(`${seed}\0${key}`).digest("hex") }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, count)
    .map(({ item }) => item);
}
