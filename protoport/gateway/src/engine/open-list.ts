/** Open connections, which only the owner of the collection adds and removes. */
export type OpenItems<T> = Iterable<T> & { readonly size: number };

/** An item of an {@link OpenList}. */
export interface OpenItem {
  /** Position in the list. Only the list changes the position. */
  openAt?: number | undefined;
}

/**
 * A list of open connections in any order. Each connection stores its position, so that removing it takes constant time.
 *
 * V8 copies the table of a `Set` after every few additions, and each old table refers to the next table. Once an old
 * table is in V8's old space, all later tables and their connections stay in memory until a full garbage collection.
 * Young collections then take 14 ms instead of 1 ms.
 */
export class OpenList<T extends OpenItem> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  [Symbol.iterator](): ArrayIterator<T> {
    // A copy, because callers close connections during the iteration.
    return this.#items.slice().values();
  }

  add(item: T): void {
    item.openAt = this.#items.length;
    this.#items.push(item);
  }

  delete(item: T): void {
    const { openAt } = item;
    if (openAt === undefined || this.#items[openAt] !== item) return;
    const last = this.#items.pop();
    item.openAt = undefined;
    if (last === undefined || last === item) return;
    this.#items[openAt] = last;
    last.openAt = openAt;
  }
}
