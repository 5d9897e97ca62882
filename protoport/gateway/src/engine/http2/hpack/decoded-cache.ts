/** Number of bytes per entry in addition to its bytes and value, for the key and a few objects. */
const entryBytes = 256;

// Number of consecutive misses after which most lookups are skipped. Clients that repeat blocks use fewer than 64.
const maxMisses = 64;

/**
 * A cache for decoded values, by encoded bytes.
 *
 * Lookups compare all bytes, either in place with the last two entries, or as a map key. So clients cannot cause false
 * hits. Clients cannot cause hash collisions either, because each process seeds its hash function. The cache is cleared
 * when its size exceeds the limit.
 */
export class DecodedCache<Value> {
  readonly #maxSizeBytes: number;
  readonly #entries = new Map<string, CachedBlock<Value>>();
  #sizeBytes = 0;
  /** The entries of the last two hits, because responses alternate between header and trailer sections. */
  #last: CachedBlock<Value> | undefined;
  #secondLast: CachedBlock<Value> | undefined;
  #misses = 0;

  /** @param maxSizeBytes - maximum number of bytes for encoded bytes, decoded values, and 256 bytes for each entry */
  constructor(maxSizeBytes: number) {
    this.#maxSizeBytes = maxSizeBytes;
  }

  /** Returns the value cached for the bytes from `from` to `to`, or `undefined` on a miss. */
  get(bytes: Buffer, from: number, to: number): Value | undefined {
    const last = this.#last;
    // Comparing 750 bytes takes 0.1 µs. Building the key and the map lookup take 0.25 µs.
    if (last !== undefined && hasBytes(last, bytes, from, to)) return last.value;
    const secondLast = this.#secondLast;
    if (secondLast !== undefined && hasBytes(secondLast, bytes, from, to)) return secondLast.value;
    this.#misses++;
    if (to - from > this.#maxSizeBytes || this.#isSkipping) return undefined;
    const entry = this.#entries.get(bytes.toString("latin1", from, to));
    if (entry === undefined) return undefined;
    this.#misses = 0;
    // The bytes are copied on the first hit, because most blocks are never repeated.
    entry.bytes ??= copyBytes(bytes, from, to);
    this.#secondLast = last;
    this.#last = entry;
    return entry.value;
  }

  /**
   * Caches the value decoded from bytes, unless the entry is larger than the cache.
   *
   * @param valueBytes - the size of the decoded value, without the encoded bytes
   */
  set(bytes: Buffer, from: number, to: number, value: Value, valueBytes: number): void {
    const sizeBytes = to - from + valueBytes + entryBytes;
    if (sizeBytes > this.#maxSizeBytes || this.#isSkipping) return;
    if (this.#sizeBytes + sizeBytes > this.#maxSizeBytes) this.clear();
    this.#entries.set(bytes.toString("latin1", from, to), { value, bytes: undefined });
    this.#sizeBytes += sizeBytes;
  }

  /** Whether to skip the lookup. If a client never repeats a block, one block in sixteen is looked up. */
  get #isSkipping(): boolean {
    return this.#misses > maxMisses && this.#misses % 16 !== 0;
  }

  clear(): void {
    this.#entries.clear();
    this.#sizeBytes = 0;
    this.#last = undefined;
    this.#secondLast = undefined;
  }
}

interface CachedBlock<Value> {
  readonly value: Value;
  /** A copy of the encoded bytes, made on the first hit. */
  bytes: Buffer | undefined;
}

/**
 * Returns whether an entry's copy of its encoded bytes equals the bytes from `from` to `to`. Without a copy, returns
 * `false`.
 */
function hasBytes({ bytes: own }: CachedBlock<unknown>, bytes: Buffer, from: number, to: number): boolean {
  const length = to - from;
  if (own?.byteLength !== length) return false;
  if (length > maxLoopBytes) return bytes.compare(own, 0, length, from, to) === 0;
  for (let at = 0; at < length; at++) if (own[at] !== bytes[from + at]) return false;
  return true;
}

/** Maximum number of bytes for which a loop is faster than a native call. */
const maxLoopBytes = 64;

// Copies bytes to a separate buffer. A slice from node's pool would keep the pool alive.
function copyBytes(bytes: Buffer, from: number, to: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(to - from);
  bytes.copy(copy, 0, from, to);
  return copy;
}
