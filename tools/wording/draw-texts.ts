import { createHash } from "node:crypto";

/**
 * Returns `count` items in the order of a hash, without duplicates. A seed always draws the same items, and adding or
 * removing an item does not affect the others.
 *
 * @param keyOf - returns a string that identifies an item
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
