import { StoreOpenError } from "../../store-open-error.ts";
import { isCitus } from "../citus/distribute.ts";
import type { Session } from "../server/session.ts";
import { type OnWaiting, runBesideServers, runLocking } from "./beside-servers.ts";
import { closeSql, dayFunctionsSql } from "./day-functions.ts";
import { giveSql, handOnSql, isByDaySql, takeSql } from "./gather.ts";
import { queryIn, type StoreSchema } from "./store-schema.ts";

/** Returns whether the deletion records are in partitions by day. */
export async function isByDay(session: Session, { deletions }: StoreSchema): Promise<boolean> {
  return (await session.query(isPartitionedSql, [deletions])).length > 0;
}

const isPartitionedSql = "SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass($1) AND relkind = 'p'";

/** Makes the partitions of the next days, if they are missing. */
export async function makeDays(session: Session, { quoted }: StoreSchema): Promise<void> {
  await session.query(`SELECT ${quoted}.plantstore_make_days()`);
}

/**
 * Returns whether the server is PostgreSQL itself, from the first release that has triggers for each row of a partitioned
 * table. The engines that speak its protocol have another name in their version.
 */
export async function isPostgres(session: Session): Promise<boolean> {
  const [row] = await session.query(isPostgresSql);
  return row?.[0] === "t";
}

const isPostgresSql = `
  SELECT pg_catalog.version() ~ '^PostgreSQL [0-9]+[a-z0-9.]* '
    AND pg_catalog.current_setting('server_version_num')::integer >= 130000`;

/** Names what belongs to the table itself, and would go on with one partition of it alone. */
export const dependentsSql = `
  SELECT string_agg(DISTINCT name, ', ') FROM (
    SELECT 'the view or rule ' || ev_class::regclass::text AS name
      FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid
      WHERE classid = 'pg_rewrite'::regclass AND refobjid = 'deletions'::regclass
    UNION ALL SELECT 'the function ' || objid::regprocedure::text FROM pg_depend
      WHERE classid = 'pg_proc'::regclass AND refobjid = 'deletions'::regclass
    UNION ALL SELECT 'the constraint ' || conname FROM pg_constraint
      WHERE confrelid = 'deletions'::regclass
        OR (conrelid = 'deletions'::regclass AND contype NOT IN ('p', 'n', 't') AND conname <> 'deletions_not_by_day')
    UNION ALL SELECT 'the policy ' || polname FROM pg_policy WHERE polrelid = 'deletions'::regclass
    UNION ALL SELECT 'row level security' FROM pg_class WHERE oid = 'deletions'::regclass AND relrowsecurity
    UNION ALL SELECT 'the publication ' || pubname FROM pg_publication_rel
      JOIN pg_publication ON pg_publication.oid = prpubid WHERE prrelid = 'deletions'::regclass
    UNION ALL SELECT 'the table ' || inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'deletions'::regclass
    UNION ALL SELECT 'privileges on columns' FROM pg_attribute
      WHERE attrelid = 'deletions'::regclass AND attacl IS NOT NULL
  ) AS dependent`;

/**
 * Divides the deletion records by day, beside servers that keep deleting. Does nothing if they are divided already, and
 * on Citus and engines without PostgreSQL's partitions. The step that is interrupted is taken again by the next attempt.
 *
 * @throws StoreOpenError naming what keeps the table from being replaced
 */
export async function divideByDay(session: Session, schema: StoreSchema, onWaiting?: OnWaiting): Promise<void> {
  if (!(await isPostgres(session)) || (await isCitus(session)) || (await isByDay(session, schema))) return;
  const [[dependents = null] = []] = await queryIn(session, schema, dependentsSql);
  if (dependents !== null) {
    throw new StoreOpenError(`the table deletions is replaced: drop ${dependents}, and create that again afterwards`);
  }
  for (const sql of byDaySql) {
    await runBesideServers(session, () => runLocking(session, schema, sql), { schema, table: "deletions" }, onWaiting);
  }
}

/** Adds a column that is to divide records, and NULL in all that are there. */
export const markSqlOf = (column: string, type: string): string => `
  DO $$ BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ALTER TABLE deletions ADD COLUMN IF NOT EXISTS ${column} ${type};
    IF NOT EXISTS (
      SELECT FROM pg_constraint WHERE conrelid = 'deletions'::regclass AND conname = 'deletions_not_by_day'
    ) THEN
      ALTER TABLE deletions ADD CONSTRAINT deletions_not_by_day CHECK (${column} IS NULL) NOT VALID;
    END IF;
  END $$`;

// The table with its rows becomes the partition of records that are dropped one by one: those with an idempotency key,
// which its index keeps from being used twice, whatever the day, and those of servers of the release before. So a row of
// it has no mark, which is checked beside servers: attaching it reads no row.
const markSql = markSqlOf("by_day", "boolean");

/** Checks that it is. */
export const validateSql: string = `
  DO $$ BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ALTER TABLE deletions VALIDATE CONSTRAINT deletions_not_by_day;
  END $$`;

const allTables = `'deletions'::regclass, 'deletions_by_row'::regclass, 'deletions_by_day'::regclass,
  'deletions_other_days'::regclass`;

/**
 * The tables are made for their owner, who may be a role of the user that migrates, and in the schema of the table, which
 * need not be the first of the search_path.
 */
export const inSchemaOfOwner: string = `
    SELECT relowner::regrole::text AS owner, relnamespace::regnamespace::text AS schema INTO one
      FROM pg_class WHERE oid = 'deletions'::regclass;
    PERFORM set_config('search_path', one.schema || ', pg_temp', true);
    IF one.owner <> quote_ident(current_user) THEN EXECUTE 'SET LOCAL ROLE ' || one.owner; END IF;`;

// Only the renaming, after what takes longer, locks the table of the servers.
const divideSql = `
  DO $divide$ DECLARE ${handOnSql} BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ${inSchemaOfOwner}
    CREATE TABLE deletions_by_day (LIKE deletions INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY RANGE (deleted_at);
    CREATE INDEX deletions_by_day_by_plant ON deletions_by_day (plant_id);
    CREATE INDEX deletions_by_day_by_time ON deletions_by_day (deleted_at);
    CREATE TABLE deletions_other_days PARTITION OF deletions_by_day DEFAULT;
    ALTER TABLE deletions_other_days REPLICA IDENTITY FULL;
    ${dayFunctionsSql}
    PERFORM plantstore_make_day((now() AT TIME ZONE 'UTC')::date);
    ALTER TABLE deletions RENAME CONSTRAINT deletions_not_by_day TO deletions_by_row_only;
    ${takeSql}
    ALTER TABLE deletions RENAME TO deletions_by_row;
    ALTER TABLE deletions_by_row ALTER COLUMN seq DROP IDENTITY;
    ALTER INDEX deletions_by_plant RENAME TO deletions_by_row_by_plant;
    ALTER INDEX deletions_by_time RENAME TO deletions_by_row_by_time;
    CREATE TABLE deletions (LIKE deletions_by_row INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY LIST (by_day);
    CREATE INDEX deletions_by_plant ON deletions (plant_id);
    CREATE INDEX deletions_by_time ON deletions (deleted_at);
    ALTER TABLE deletions ATTACH PARTITION deletions_by_row FOR VALUES IN (NULL);
    ALTER TABLE deletions ATTACH PARTITION deletions_by_day FOR VALUES IN (true);
    ${closeSql(allTables)}
    ${giveSql}
    ALTER TABLE deletions_by_row DROP CONSTRAINT deletions_by_row_only;
  END $divide$`;

/**
 * The steps in which a table of records is divided by day. Each is one transaction, which locks the table for a moment,
 * and changes nothing when it is repeated.
 */
export const byDaySql: readonly string[] = [markSql, validateSql, divideSql];
