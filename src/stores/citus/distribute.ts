import { StoreOpenError } from "../contract/store-open-error.ts";
import { searchPathSql, type StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import type { Session } from "../postgres/server/session.ts";
import { deleteFunction, functionBody, functionSql } from "./delete-function.ts";

const schemaDistributed =
  "a distributed schema (schema-based sharding of Citus) is not supported: use another schema, " +
  'or run "SELECT citus_schema_undistribute(current_schema)"';

/** Refuses a schema that Citus has distributed to one worker (schema-based sharding). @throws StoreOpenError */
export async function refuseDistributedSchema(session: Session, { quoted }: StoreSchema): Promise<void> {
  // Servers without Citus, or with Citus before 12, do not have the table `pg_dist_schema`.
  const [known] = await session.query("SELECT pg_catalog.to_regclass('pg_catalog.pg_dist_schema')");
  if (known?.[0] === null) return;
  const sql = "SELECT FROM pg_catalog.pg_dist_schema WHERE schemaid = pg_catalog.to_regnamespace($1)";
  const found = await session.query(sql, [quoted]);
  if (found.length > 0) throw new StoreOpenError(schemaDistributed);
}

/** Returns whether the server has Citus. */
export async function isCitus(session: Session): Promise<boolean> {
  return (await session.query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus'")).length > 0;
}

/** The error if an operator distributed the tables without `migrate`, which also creates `plantstore_delete`. */
export const incompleteDistribution: string =
  'its tables were not distributed by "plantstore migrate": run "plantstore migrate" to complete them';
const distributedDifferently =
  '"plants" must be distributed by "id", and "deletions" by "plant_id" and colocated with "plants"';

/**
 * Distributes a store's tables and rows over the workers, while deletions wait. If an operator has distributed the
 * tables, adds only missing indexes and functions. Replaces another release's function. Does nothing without Citus.
 *
 * @throws StoreOpenError if an operator has distributed the tables differently
 */
export async function distribute(session: Session, schema: StoreSchema): Promise<void> {
  if (!(await isCitus(session))) return;
  // If several processes distribute the tables, the others wait here, and then see the changes of the first process.
  const begin = `${readCommitted}; ${searchPathSql(schema)}; SELECT version FROM ${schema.versionTable} FOR UPDATE`;
  await session.transact(begin, async () => {
    for (const sql of await missingSql(session)) await session.run(sql);
  });
}

async function missingSql(session: Session): Promise<readonly string[]> {
  const [[state] = []] = await session.query(stateSql, [functionBody]);
  if (state === "otherwise") throw new StoreOpenError(distributedDifferently);
  if (state === "of another release") return [functionSql];
  if (state === "by hand") return [sequentialSql, ...keysSql, functionSql, distributeFunctionSql];
  if (state !== "local") return [];
  return [sequentialSql, primaryKeySql, ...keysSql, distributeSql, functionSql, distributeFunctionSql];
}

const stateSql = `
  SELECT CASE
    WHEN plants.logicalrelid IS NULL THEN 'local'
    WHEN plants.partmethod <> 'h' OR prosrc = $1 THEN 'done'
    WHEN prosrc IS NOT NULL THEN 'of another release'
    WHEN deletions.colocationid = plants.colocationid
      AND column_to_column_name(deletions.logicalrelid, deletions.partkey) = 'plant_id' THEN 'by hand'
    ELSE 'otherwise' END
  FROM (SELECT) AS one LEFT JOIN pg_dist_partition AS plants ON plants.logicalrelid = to_regclass('plants')
    LEFT JOIN pg_dist_partition AS deletions ON deletions.logicalrelid = to_regclass('deletions')
    LEFT JOIN pg_proc ON pg_proc.oid = to_regprocedure('${deleteFunction}')`;

const sequentialSql = "SET LOCAL citus.multi_shard_modify_mode = 'sequential';";

const primaryKeySql = "ALTER TABLE deletions DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (plant_id, seq);";

// Each statement is sent separately, because Citus may forward the other statements in a message to the workers.
const keysSql = [
  "DROP INDEX IF EXISTS deletions_by_plant",
  "DROP INDEX IF EXISTS deletions_by_key",
  "UPDATE deletions SET idempotency_key = plant_id::text || ':' || idempotency_key WHERE idempotency_key IS NOT NULL",
  "CREATE UNIQUE INDEX deletions_by_key ON deletions (plant_id, idempotency_key) WHERE idempotency_key IS NOT NULL",
];

const distributeSql = `
  SELECT create_distributed_table('plants', 'id');
  SELECT create_distributed_table('deletions', 'plant_id', colocate_with => 'plants');`;

const distributeFunctionSql = `SELECT create_distributed_function('${deleteFunction}', 'one', colocate_with => 'plants')`;
