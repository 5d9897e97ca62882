/**
 * A map of at most `2 * limit` values that drops those not used recently.
 *
 * It has two generations. A value that is used moves to the young one; when the young one is full, it becomes the old
 * one, and the previous old one is dropped. A hit in the young generation is a single lookup, whereas a list ordered by
 * last use would need a delete and an insert.
 */
export class BoundedCache<V> {
  readonly #limit: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  /** Creates an empty cache; `limit` is the number of values in one generation. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the value last set for the key, unless it has been dropped. */
  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Stores a value, replacing an earlier one with the same key. */
  set(key: string, value: V): void {
    if (this.#young.size >= this.#limit && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
