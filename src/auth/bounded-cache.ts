/**
 * A map that forgets what was not used lately, so that it holds at most twice `limit` values.
 *
 * Two generations: a value that is used moves to the young one, and when that is full the old one is
 * dropped whole. A hit in the young generation costs one look-up and no bookkeeping, where a list of
 * last use costs a delete and an insert.
 */
export class BoundedCache<V> {
  readonly #limit: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  /** Makes an empty cache; `limit` is the number of values of one generation. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the value last set for the key, unless it is forgotten. */
  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Keeps a value; another one of the same key is replaced. */
  set(key: string, value: V): void {
    if (this.#young.size >= this.#limit && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
    this.#old.delete(key);
  }

  /** Forgets a value at once. */
  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
