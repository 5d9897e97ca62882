import { escapeLiteral } from "pg";
import { type Requested, toStorableText } from "../contract/backend.ts";
import { StoreOpenError } from "../contract/store-options.ts";
import { verdictOn } from "../postgres/delete/fault-table.ts";
import { idsOf, keysOf, probeWrite, type StoreTables } from "../postgres/delete/store-tables.ts";
import { searchPathSql, type StoreSchema } from "../postgres/schema/store-schema.ts";
import { sqlStateOf } from "../postgres/server/connect.ts";
import { briefTransaction, readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Session } from "../postgres/server/session.ts";

// The settings also apply on the workers, for this transaction. Citus forwards a worker's warning as a debug message.
const begin = `${briefTransaction}; SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL lock_timeout = 100;
  SET LOCAL synchronous_commit = on; SET LOCAL row_security = off; SET LOCAL client_min_messages = debug1;
  SET LOCAL citus.worker_min_messages = debug1`;

/**
 * Returns the tables that Citus distributes over workers, with a plant and its records on one worker.
 *
 * A batch has only plants of one worker, so its commit has one phase, unless a shard has just moved. Each statement is
 * for one shard, because Citus supports SKIP LOCKED only within a shard. An index cannot be unique across workers, so a
 * key applies to one plant.
 */
export function citusTables(schema: StoreSchema, shards: readonly Shard[]): StoreTables {
  const { plants, deletions } = schema;
  const lane = (id: bigint): number => shards[shardOf(shards, id)]?.worker ?? 0;
  // Enough for thousands of shards. A worker with very few hashes may be missing.
  const oneOfEach = new Map<number, bigint>();
  for (let id = 100_000n; id >= 0n; id--) oneOfEach.set(lane(id), id);
  return {
    lanes: { of: lane, maxInFlight: 1 },
    isDistributed: true,
    schema,
    // A cancelled COMMIT (57014) may have taken effect on a worker, so the records are looked up.
    verdictOn: (fault) => (sqlStateOf(fault) === "57014" ? "unknown" : verdictOn(fault)),
    deletePlants: (session, calls, token) =>
      session.transact(begin, async () => {
        const run = (part: readonly Requested[], toSql: (ofShard: readonly Requested[]) => string) =>
          session.runChecked([...Map.groupBy(part, ({ id }) => shardOf(shards, id)).values()].map(toSql).join(";"));
        const rows = await run(calls, (part) => deleteOfShardSql(schema, part));
        const ids = new Set(rows.filter(({ length }) => length === 1).map(([id]) => id ?? ""));
        const keptCount = rows.length - 2 * ids.size;
        const gone = calls.filter(({ id }) => ids.has(String(id)));
        const records = gone.length === 0 ? [] : await run(gone, (part) => insertInShardSql(schema, part, token));
        // As on a single server, a trigger that drops a record or keeps one of several plants fails the batch.
        if (records.length < gone.length || (keptCount > 0 && calls.length > 1))
          await session.run("SELECT 'a trigger keeps a plant or drops its record'::bigint");
        return { ids, isKept: keptCount > 0 };
      }),
    // Reads the plants first, because two statements read two snapshots: the records are then those of all missing plants.
    // The record that is rolled back makes the commit wait for the worker's standbys.
    findWhy: (session, calls, tokens) => {
      // Values instead of parameters, because Citus cannot plan a statement once for all values (`plan_cache_mode`).
      const ids = `ANY('${idsOf(calls)}'::bigint[])`;
      const whySql = `SELECT id, NULL, NULL, NULL FROM ${plants} WHERE id = ${ids};
        SELECT plant_id, idempotency_key, subject, batch FROM ${deletions} WHERE plant_id = ${ids}
          AND (idempotency_key = ANY(${escapeLiteral(keysOf(calls))}::text[]) OR batch = ANY('${tokens}'::uuid[]));
        SAVEPOINT why; ${probeSql(schema, calls[0]?.id ?? 0n)}; ROLLBACK TO SAVEPOINT why`;
      return session.transact(begin, () => session.run(whySql));
    },
    dropPause: 0,
    // Checks each worker. Rejects if all are unavailable, or if one refuses the check, which only an operator can fix.
    checkWrite: async (session) => {
      const faults: unknown[] = [];
      for (const id of oneOfEach.values())
        await probeWrite(session, schema, id, probeSql(schema, id)).catch((fault: unknown) => void faults.push(fault));
      const fault = faults.find((one) => verdictOn(one) === "fail");
      if (fault !== undefined || faults.length === oneOfEach.size) throw fault ?? faults[0];
    },
  };
}

// The default for `seq` would involve the coordinator and its standbys. A random `seq` keeps concurrent checks from
// blocking each other. Real records have a positive `seq`.
const probeSql = ({ deletions }: StoreSchema, id: bigint): string => `
  INSERT INTO ${deletions} (seq, plant_id, subject, request_id, batch) OVERRIDING SYSTEM VALUE
  VALUES (-(1 + pg_catalog.random() * 1e15)::bigint, ${id}, '', '', '00000000-0000-0000-0000-000000000000')`;

const textOf = (text: string): string => escapeLiteral(toStorableText(text));

// Returns the free plants in two columns, and the deleted ones in one. Only this form, in which the ids are constants of
// one shard, is sent to the worker as it is.
function deleteOfShardSql({ plants, deletions }: StoreSchema, part: readonly Requested[]): string {
  const ids = `ANY('${idsOf(part)}'::bigint[])`;
  const used = part.flatMap(({ id, call: { idempotencyKey: key } }) =>
    key === undefined ? [] : [`(plant_id = ${id} AND idempotency_key = ${textOf(key)})`],
  );
  const usedSql = `SELECT FROM ${deletions} WHERE plant_id = ${plants}.id AND (${used.join(" OR ")})`;
  const unused = used.length === 0 ? "" : `AND NOT EXISTS (${usedSql})`;
  const free = `${plants} WHERE id = ${ids} ${unused} FOR UPDATE SKIP LOCKED`;
  return `SELECT id, '' FROM ${free}; DELETE FROM ${plants} WHERE id = ${ids} AND id IN (SELECT id FROM ${free}) RETURNING id`;
}

// Only VALUES is sent to the worker as it is. INSERT … SELECT would send its rows through the coordinator's disk.
function insertInShardSql({ deletions }: StoreSchema, part: readonly Requested[], token: string): string {
  const rows = part.map(({ id, call: { subject, requestId, idempotencyKey: key } }) =>
    [id, textOf(subject), textOf(requestId), `'${token}'`, key === undefined ? "NULL" : textOf(key)].join(),
  );
  return `INSERT INTO ${deletions} (plant_id, subject, request_id, batch, idempotency_key) VALUES (${rows.join("), (")}) RETURNING plant_id`;
}

/** A shard of the tables: its largest hash, and the number of its worker. */
export type Shard = { readonly maxHash: number; readonly worker: number };

// Whether the schema is distributed, and whether the tables are as by {@link distribute}. NULL for local tables.
const distributionSql = `
  SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_schema WHERE schemaid = pg_catalog.to_regnamespace($3)),
    pg_catalog.min(colocationid) = pg_catalog.max(colocationid)
    AND pg_catalog.string_agg(key, ' ' ORDER BY logicalrelid = pg_catalog.to_regclass($2)) = 'id plant_id'
    AND pg_catalog.bool_and(EXISTS (SELECT FROM pg_catalog.pg_index
      WHERE indrelid = pg_catalog.to_regclass($2) AND indisunique AND NOT indisprimary))
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

/** Returns whether {@link distribute} has distributed the tables, or `undefined` without Citus. @throws StoreOpenError */
export async function isDistributed(session: Session, schema: StoreSchema): Promise<boolean | undefined> {
  const [citus] = await session.query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus'");
  if (citus === undefined) return undefined;
  const [[isSchema, isOwn] = []] = await session.query(distributionSql, [
    schema.plants,
    schema.deletions,
    schema.quoted,
  ]);
  if (isSchema !== "t" && isOwn !== "f") return isOwn === "t";
  throw new StoreOpenError(
    isSchema === "t"
      ? 'a distributed schema (schema-based sharding of Citus) is not supported: use another schema, or run "SELECT citus_schema_undistribute(current_schema)"'
      : 'its tables were not distributed by "plantstore migrate": "plants" must be distributed by "id", "deletions" by "plant_id" and colocated with "plants", with a unique index on (plant_id, idempotency_key)',
  );
}

/**
 * Distributes a store's tables and rows by the plant over the workers, while deletions wait. Does nothing without Citus,
 * or if the tables are already distributed. A plant and its records are on one worker, and keys apply per plant.
 */
export async function distribute(session: Session, schema: StoreSchema): Promise<void> {
  if ((await isDistributed(session, schema)) !== false) return;
  // If several processes distribute the tables, the others wait here, and then see the changes of the first process.
  const locked = `${readCommitted}; ${searchPathSql(schema)}; SELECT version FROM ${schema.versionTable} FOR UPDATE`;
  await session.transact(locked, async () => {
    // Each statement is sent separately, because Citus may forward the other statements in a message to the workers.
    if (!(await isDistributed(session, schema))) for (const sql of distributeSql) await session.run(sql);
  });
}

/** Finds the shards by ascending hash, if the tables are distributed. @throws StoreOpenError if a worker is unsuitable */
export async function findShards(session: Session, schema: StoreSchema): Promise<readonly Shard[] | undefined> {
  if ((await isDistributed(session, schema)) !== true) return undefined;
  const [wrong] = await session.query(settingsSql);
  if (wrong !== undefined)
    throw new StoreOpenError(`fsync and encoding of the worker ${wrong[0]} must be on and UTF8, got ${wrong[1]}`);
  return toShards((await session.query(shardsSql, [schema.plants])).map((row) => row.map(Number)));
}

/** Returns the shards with these lowest and highest hashes and workers. @throws Error if a hash is in no shard */
export function toShards(rows: readonly (readonly number[])[]): readonly Shard[] {
  let next = -(2 ** 31);
  for (const [minHash = Number.NaN, maxHash = Number.NaN] of rows) next = minHash <= next ? maxHash + 1 : Number.NaN;
  if (next === 2 ** 31) return rows.map(([, maxHash = 0, worker = 0]) => ({ maxHash, worker }));
  throw new Error("a shard of the table plants has no worker: compare pg_dist_shard with pg_dist_placement");
}

/** Returns the index of a plant's shard. May be wrong for seconds after a shard was split. */
export function shardOf(shards: readonly Shard[], id: bigint): number {
  const hash = hashOf(id);
  return shards.findIndex(({ maxHash }) => hash <= maxHash);
}

/**
 * Returns the hash of a plant's id. Citus chooses the shard by this hash. PostgreSQL's `hashint8` applies the final mix
 * in Bob Jenkins' lookup3 (burtleburtle.net/bob/c/lookup3.c) to the id's halves, with the seed for a four-byte key.
 */
export function hashOf(id: bigint): number {
  const high = Number(BigInt.asIntN(32, id >> 32n));
  const half = Number(BigInt.asIntN(32, id)) ^ (id >= 0n ? high : ~high);
  const seed = (0x9e3779b9 + 4 + 3_923_095) | 0;
  let [c, b, a] = [seed, seed, (seed + half) | 0];
  for (const bits of [14, 11, 25, 16, 4, 14, 24]) {
    [c, b, a] = [a, ((c ^ b) - ((b << bits) | (b >>> (32 - bits)))) | 0, b];
  }
  return b;
}
