/**
 * Translates SourceCodeInfo paths after list items were removed. A path alternates field numbers and list indexes
 * (descriptor.proto), such as `[4, 0, 2, 3]` for the first message's fourth field.
 */
export class ListPositions {
  /** For each changed list, by its old path: the new indexes of kept items, by old index. */
  readonly #lists = new Map<string, ReadonlyMap<number, number>>();

  /** Returns the items to keep, with their old indexes. @param path - the list's old path */
  filter<Item>(
    path: readonly number[],
    items: readonly Item[],
    isKept: (item: Item, at: number) => boolean,
  ): readonly (readonly [Item, number])[] {
    const kept = items.map((item, at) => [item, at] as const).filter(([item, at]) => isKept(item, at));
    if (kept.length < items.length) this.#lists.set(path.join(), new Map(kept.map(([, old], at) => [old, at])));
    return kept;
  }

  /** Returns an element's new path, or `undefined` if the element was removed. */
  translate(path: number[]): number[] | undefined {
    if (this.#lists.size === 0) return path;
    const translated = [...path];
    for (let at = 1; at < path.length; at += 2) {
      const list = this.#lists.get(path.slice(0, at).join());
      const [old] = path.slice(at);
      if (list === undefined || old === undefined) continue;
      const position = list.get(old);
      if (position === undefined) return undefined;
      translated[at] = position;
    }
    return translated;
  }
}
