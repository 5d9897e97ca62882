import { StoreOpenError } from "../contract/store-open-error.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import type { Session } from "../postgres/server/session.ts";
import { deleteFunction } from "./delete-function.ts";
import { incompleteDistribution, isCitus } from "./distribute.ts";

// Maximum number of ids that are tried to find an id for each worker. This finds a worker with one shard in thousands.
// The search would take hours for a shard with a single hash in 2^32, such as the shard of an isolated tenant.
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

  /** Finds an id for each worker. A plant with the id need not exist. A worker with very few ids may be missing. */
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
 * Finds the shards of the tables. Returns `undefined` if the tables are not distributed.
 *
 * @throws StoreOpenError if `migrate` did not distribute the tables, or the session would not get workers' warnings
 */
export async function findShards(session: Session, { quoted, plants }: StoreSchema): Promise<Shards | undefined> {
  if (!(await isCitus(session))) return undefined;
  const rows = await session.query(shardsSql, [plants, `${quoted}.${deleteFunction}`]);
  if (rows.length === 0) return undefined;
  if (rows.some(([, , canDelete]) => canDelete === "f")) throw new StoreOpenError(incompleteDistribution);
  if (rows.some(([, , , showsAll]) => showsAll === "f")) throw new StoreOpenError(warningsHidden);
  return new Shards(
    rows.map(([max]) => Number(max)),
    rows.map(([, index]) => Number(index)),
  );
}

// A table on a single node has a shard without hashes, and is used like a table on a server without Citus.
const shardsSql = `
  SELECT shardmaxvalue, pg_catalog.dense_rank() OVER (ORDER BY groupid) - 1,
    pg_catalog.to_regprocedure($2) IS NOT NULL,
    pg_catalog.current_setting('client_min_messages') LIKE 'debug%'
      AND pg_catalog.current_setting('citus.worker_min_messages') LIKE 'debug%'
  FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) AND shardmaxvalue IS NOT NULL ORDER BY shardmaxvalue::integer`;

const warningsHidden =
  "set client_min_messages and citus.worker_min_messages to debug1 for the role, because a connection pooler drops the " +
  "values that the connection sets; otherwise a commit missing on the standbys of a worker would go unnoticed";

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
