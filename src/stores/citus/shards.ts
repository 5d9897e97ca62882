import { StoreOpenError } from "../contract/store-options.ts";
import { searchPathSql, type StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Session } from "../postgres/server/session.ts";

/** A shard of the tables: its largest hash, and the number of its worker. */
export interface Shard {
  readonly maxHash: number;
  readonly worker: number;
}

// Whether the tables are distributed as by {@link distribute}. NULL if they are not distributed.
const distributionSql = `
  SELECT pg_catalog.min(colocationid) = pg_catalog.max(colocationid)
    AND pg_catalog.string_agg(key, ' ' ORDER BY logicalrelid = pg_catalog.to_regclass($2)) = 'id plant_id'
    AND EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass($2) AND indisunique AND NOT indisprimary)
  FROM pg_catalog.pg_dist_partition, pg_catalog.column_to_column_name(logicalrelid, partkey) AS key
  WHERE partmethod = 'h' AND logicalrelid IN (pg_catalog.to_regclass($1), pg_catalog.to_regclass($2))`;

const shardsSql = `
  SELECT shardminvalue, shardmaxvalue, groupid FROM pg_catalog.pg_dist_shard JOIN pg_catalog.pg_dist_placement USING (shardid)
  WHERE logicalrelid = pg_catalog.to_regclass($1) ORDER BY shardmaxvalue::integer`;

// The settings of a new session on each reachable worker. A worker that is down is not listed.
const settingsSql = `
  SELECT nodename || ':' || nodeport, result FROM pg_catalog.run_command_on_workers(
    $$SELECT current_setting('fsync') || ' ' || current_setting('server_encoding')$$)
  WHERE success AND result <> 'on UTF8'`;

const distributeSql = [
  "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
  "ALTER TABLE deletions DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (plant_id, seq)",
  "DROP INDEX deletions_by_plant, deletions_by_key",
  "CREATE UNIQUE INDEX deletions_by_key ON deletions (plant_id, idempotency_key) WHERE idempotency_key IS NOT NULL",
  "SELECT create_distributed_table('plants', 'id')",
  "SELECT create_distributed_table('deletions', 'plant_id', colocate_with => 'plants')",
];

/** Returns whether the server has Citus. Refuses a schema that Citus has distributed to one worker. */
export async function hasCitus(session: Session, { quoted }: StoreSchema): Promise<boolean> {
  if ((await session.query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus'")).length === 0) return false;
  const sql = "SELECT FROM pg_catalog.pg_dist_schema WHERE schemaid = pg_catalog.to_regnamespace($1)";
  if ((await session.query(sql, [quoted])).length === 0) return true;
  throw new StoreOpenError(
    'a distributed schema (schema-based sharding of Citus) is not supported: use another schema, or run "SELECT citus_schema_undistribute(current_schema)"',
  );
}

/** Returns whether the tables are distributed. @throws StoreOpenError if an operator has distributed them differently */
async function isDistributed(session: Session, { plants, deletions }: StoreSchema): Promise<boolean> {
  const [[isOwn = null] = []] = await session.query(distributionSql, [plants, deletions]);
  if (isOwn !== "f") return isOwn === "t";
  throw new StoreOpenError(
    'its tables were not distributed by "plantstore migrate": "plants" must be distributed by "id", "deletions" by "plant_id" and colocated with "plants", with a unique index on (plant_id, idempotency_key)',
  );
}

/**
 * Distributes a store's tables and rows by the plant over the workers, while deletions wait. Does nothing without Citus,
 * or if the tables are already distributed. A plant and its records are on one worker, and keys apply per plant.
 */
export async function distribute(session: Session, schema: StoreSchema): Promise<void> {
  if (!(await hasCitus(session, schema))) return;
  // If several processes distribute the tables, the others wait here, and then see the changes of the first process.
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SELECT version FROM ${schema.versionTable} FOR UPDATE`;
  await session.transact(begin, async () => {
    // Each statement is sent separately, because Citus may forward the other statements in a message to the workers.
    if (!(await isDistributed(session, schema))) for (const sql of distributeSql) await session.run(sql);
  });
}

/**
 * Finds the shards in ascending order of their hashes. Returns `undefined` if the tables are not distributed.
 *
 * @throws StoreOpenError if a worker's commits would not be durable. Throws an `Error` if a shard has no worker
 */
export async function findShards(session: Session, schema: StoreSchema): Promise<readonly Shard[] | undefined> {
  if (!(await hasCitus(session, schema)) || !(await isDistributed(session, schema))) return undefined;
  const [wrong] = await session.query(settingsSql);
  if (wrong !== undefined)
    throw new StoreOpenError(`fsync and encoding of the worker ${wrong[0]} must be on and UTF8, got ${wrong[1]}`);
  return toShards((await session.query(shardsSql, [schema.plants])).map((row) => row.map(Number)));
}

/** Returns the shards with these lowest and highest hashes and workers. @throws Error if a hash is in no shard */
export function toShards(rows: readonly (readonly number[])[]): readonly Shard[] {
  let next = -(2 ** 31);
  const shards = rows.map(([minHash = Number.NaN, maxHash = Number.NaN, worker = Number.NaN]) => {
    next = minHash <= next ? maxHash + 1 : Number.NaN;
    return { maxHash, worker };
  });
  if (next === 2 ** 31) return shards;
  throw new Error("a shard of the table plants has no worker: compare pg_dist_shard with pg_dist_placement");
}

/** Returns the index of a plant's shard. May be wrong for seconds after a shard was split. */
export function shardOf(shards: readonly Shard[], id: bigint): number {
  const hash = hashOf(id);
  return shards.findIndex(({ maxHash }) => hash <= maxHash);
}

/**
 * Returns the hash of a plant's id. Citus chooses the shard by this hash. PostgreSQL's `hashint8` applies the final mix
 * in Bob Jenkins' lookup3 (burtleburtle.net/bob/c/lookup3.c) to the id's halves.
 */
export function hashOf(id: bigint): number {
  const high = Number(BigInt.asIntN(32, id >> 32n));
  const half = Number(BigInt.asIntN(32, id)) ^ (id >= 0n ? high : ~high);
  // PostgreSQL's seed for a four-byte key.
  const seed = (0x9e3779b9 + 4 + 3_923_095) | 0;
  let [c, b, a] = [seed, seed, (seed + half) | 0];
  for (const bits of [14, 11, 25, 16, 4, 14, 24]) {
    const mixed = ((c ^ b) - ((b << bits) | (b >>> (32 - bits)))) | 0;
    [c, b, a] = [a, mixed, b];
  }
  return b;
}
