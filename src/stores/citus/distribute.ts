import { StoreOpenError } from "../contract/store-open-error.ts";
import { searchPathSql, type StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Session } from "../postgres/server/session.ts";

/** Refuses a schema that Citus has distributed to one worker (schema-based sharding). @throws StoreOpenError */
export async function refuseDistributedSchema(session: Session, { quoted }: StoreSchema): Promise<void> {
  // Servers without Citus, or with Citus before 12, do not have the table `pg_dist_schema`.
  const [known] = await session.query("SELECT pg_catalog.to_regclass('pg_catalog.pg_dist_schema')");
  if (known?.[0] === null) return;
  const sql = "SELECT FROM pg_catalog.pg_dist_schema WHERE schemaid = pg_catalog.to_regnamespace($1)";
  if ((await session.query(sql, [quoted])).length === 0) return;
  throw new StoreOpenError(
    "a distributed schema (schema-based sharding of Citus) is not supported: use another schema, " +
      'or run "SELECT citus_schema_undistribute(current_schema)"',
  );
}

/** Returns whether the server has Citus. */
export async function isCitus(session: Session): Promise<boolean> {
  return (await session.query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus'")).length > 0;
}

/**
 * Distributes a store's tables and rows by the plant over the workers, while deletions wait. Does nothing without Citus,
 * or if the tables are already distributed. A plant and its records are on one worker, and keys apply per plant.
 */
export async function distribute(session: Session, schema: StoreSchema): Promise<void> {
  if (!(await isCitus(session))) return;
  // If several processes distribute the tables, the others wait here, and then see the changes of the first process.
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SELECT version FROM ${schema.versionTable} FOR UPDATE`;
  await session.transact(begin, async () => {
    // Each statement is sent separately, because Citus may forward the other statements in a message to the workers.
    if (!(await isDistributed(session, schema))) for (const sql of distributeSql) await session.run(sql);
  });
}

const distributionSql = `
  SELECT deletions.colocationid = plants.colocationid
    AND pg_catalog.column_to_column_name(deletions.logicalrelid, deletions.partkey) = 'plant_id'
    AND EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = deletions.logicalrelid AND indisunique AND NOT indisprimary)
  FROM pg_catalog.pg_dist_partition AS plants
    LEFT JOIN pg_catalog.pg_dist_partition AS deletions ON deletions.logicalrelid = pg_catalog.to_regclass($2)
  WHERE plants.logicalrelid = pg_catalog.to_regclass($1) AND plants.partmethod = 'h'`;

/** Returns whether the tables are distributed. @throws StoreOpenError if an operator has distributed them differently */
export async function isDistributed(session: Session, { plants, deletions }: StoreSchema): Promise<boolean> {
  const [found] = await session.query(distributionSql, [plants, deletions]);
  if (found === undefined || found[0] === "t") return found !== undefined;
  throw new StoreOpenError(
    'its tables were not distributed by "plantstore migrate": "plants" must be distributed by "id", "deletions" by ' +
      '"plant_id" and colocated with "plants", with a unique index on (plant_id, idempotency_key)',
  );
}

const distributeSql = [
  "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
  "ALTER TABLE deletions DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (plant_id, seq)",
  "DROP INDEX deletions_by_plant, deletions_by_key",
  "CREATE UNIQUE INDEX deletions_by_key ON deletions (plant_id, idempotency_key) WHERE idempotency_key IS NOT NULL",
  "SELECT create_distributed_table('plants', 'id')",
  "SELECT create_distributed_table('deletions', 'plant_id', colocate_with => 'plants')",
];
