// The maximum number of ids tried to find one on each worker: enough for a worker with one of thousands of shards. For
// a shard with a single one of the 2^32 hashes, such as that of an isolated tenant, the search would take hours.
const searchedIdsMax = 100_000;

/** The placement of the shards of the tables. */
export class Shards {
  /** The largest hash of each shard, in ascending order. */
  readonly hashMax: readonly number[];
  /** The index of the worker of each shard. */
  readonly worker: readonly number[];
  /**
   * One id on each worker, whether or not the plant exists. A worker with very few of all possible ids may be missing;
   * it is not checked.
   */
  readonly oneOfEach: readonly bigint[];

  constructor(hashMax: readonly number[], worker: readonly number[]) {
    this.hashMax = hashMax;
    this.worker = worker;
    this.oneOfEach = this.#findOneOfEach();
  }

  /**
   * Returns the index of the worker that has a plant. It may be wrong for some seconds after a shard was moved;
   * deletions are then slower, but correct.
   */
  workerOf(id: bigint): number {
    const hash = hashOf(id);
    return this.worker[this.hashMax.findIndex((max) => hash <= max)] ?? 0;
  }

  #findOneOfEach(): readonly bigint[] {
    const remaining = new Set(this.worker);
    const foundPlants: bigint[] = [];
    for (let id = 0n; remaining.size > 0 && id < searchedIdsMax; id++) {
      if (remaining.delete(this.workerOf(id))) foundPlants.push(id);
    }
    return foundPlants;
  }
}

/**
 * Returns the hash of an id by which Citus chooses its shard: `hashint8` of PostgreSQL, which is the final mix of Bob
 * Jenkins' lookup3 (burtleburtle.net/bob/c/lookup3.c) over the halves of the id.
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

// PostgreSQL's seed for a key of four bytes.
const hashSeed = (0x9e3779b9 + 4 + 3_923_095) | 0;

function rotateLeft(bits: number, by: number): number {
  return (bits << by) | (bits >>> (32 - by));
}
