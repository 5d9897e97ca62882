import { StoreOpenError } from "../contract/store-open-error.ts";
import type { StoreSchema } from "../postgres/schema/store-schema.ts";
import type { Row, Session } from "../postgres/server/session.ts";
import { isCitus, isDistributed, refuseDistributedSchema } from "./distribute.ts";

/** A shard of the tables: its largest hash, its number, and its worker. */
export interface Shard {
  readonly hashMax: number;
  readonly worker: number;
}

const shardsSql = `
  SELECT shardmaxvalue, groupid FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) ORDER BY shardmaxvalue::integer`;

// The settings of a new session on each reachable worker. A worker that is down is not listed.
const settingsSql = `
  SELECT nodename, nodeport, result FROM pg_catalog.run_command_on_workers(
    $$SELECT current_setting('fsync') || ' ' || current_setting('server_encoding')$$) WHERE success`;

/**
 * Finds the shards in ascending order of their hashes. Returns `undefined` if the tables are not distributed.
 *
 * @throws StoreOpenError if a worker's commits would not be durable
 */
export async function findShards(session: Session, schema: StoreSchema): Promise<readonly Shard[] | undefined> {
  if (!(await isCitus(session))) return undefined;
  if (!(await isDistributed(session, schema))) {
    await refuseDistributedSchema(session, schema);
    return undefined;
  }
  const rows = await session.query(shardsSql, [schema.plants]);
  const wrong = (await session.query(settingsSql)).find(([, , settings]) => settings !== "on UTF8");
  if (wrong !== undefined) {
    throw new StoreOpenError(
      `fsync and encoding of the worker ${wrong[0]}:${wrong[1]} must be on and UTF8, got ${wrong[2]}`,
    );
  }
  return rows.map(([hashMax, worker]: Row) => ({ hashMax: Number(hashMax), worker: Number(worker) }));
}

/** Returns the index of a plant's shard. May be wrong for seconds after a shard was split. */
export function shardOf(shards: readonly Shard[], id: bigint): number {
  const hash = hashOf(id);
  return Math.max(
    0,
    shards.findIndex(({ hashMax }) => hash <= hashMax),
  );
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
