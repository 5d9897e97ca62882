// Maximum number of ids that are tried to find an id for each worker. The maximum is enough for thousands of shards. An
// isolated tenant's shard has only one of 2^32 hashes, and finding an id for it would take hours.
const searchedIdsMax = 100_000;

/** The shards of the tables, and the worker of each shard. */
export class Shards {
  /** The largest hash of each shard, in ascending order. */
  readonly hashMax: readonly number[];
  /** The worker of each shard, in the order of `hashMax`. */
  readonly worker: readonly number[];

  constructor(hashMax: readonly number[], worker: readonly number[]) {
    this.hashMax = hashMax;
    this.worker = worker;
  }

  /** Returns a plant's worker. May be wrong for seconds after a shard has moved, which only slows deletions down. */
  workerOf(id: bigint): number {
    const hash = hashOf(id);
    return this.worker[this.hashMax.findIndex((max) => hash <= max)] ?? 0;
  }

  /** Finds an id for each worker. A plant with the id need not exist. May omit a worker with very few ids. */
  findOneOfEach(): readonly bigint[] {
    const remaining = new Set(this.worker);
    const found: bigint[] = [];
    for (let id = 0n; remaining.size > 0 && id < searchedIdsMax; id++) {
      if (remaining.delete(this.workerOf(id))) found.push(id);
    }
    return found;
  }
}

/**
 * Returns the hash of a plant's id. Citus chooses the shard by this hash. PostgreSQL's `hashint8` applies the final mix
 * in Bob Jenkins' lookup3 (burtleburtle.net/bob/c/lookup3.c) to the id's halves.
 */
export function hashOf(id: bigint): number {
  const high = Number(BigInt.asIntN(32, id >> 32n));
  const half = Number(BigInt.asIntN(32, id)) ^ (id >= 0n ? high : ~high);
  let [a, b, c] = [(hashSeed + half) | 0, hashSeed, hashSeed];
  c = ((c ^ b) - rotateLeft(b, 14)) | 0;
  a = ((a ^ c) - rotateLeft(c, 11)) | 0;
  b = ((b ^ a) - rotateLeft(a, 25)) | 0;
  c = ((c ^ b) - rotateLeft(b, 16)) | 0;
  a = ((a ^ c) - rotateLeft(c, 4)) | 0;
  b = ((b ^ a) - rotateLeft(a, 14)) | 0;
  return ((c ^ b) - rotateLeft(b, 24)) | 0;
}

// PostgreSQL's seed for a four-byte key.
const hashSeed = (0x9e3779b9 + 4 + 3_923_095) | 0;

function rotateLeft(bits: number, by: number): number {
  return (bits << by) | (bits >>> (32 - by));
}
