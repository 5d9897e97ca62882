import { StoreOpenError } from "../../store-open-error.ts";
import type { RecordDays } from "../delete/placement.ts";
import { type OnWaiting, runBesideServers, tableLockMs } from "../schema/beside-servers.ts";
import { closeSql } from "../schema/day-functions.ts";
import { grantsSql, isByDaySql } from "../schema/gather.ts";
import { queryIn, searchPathSql, type StoreSchema } from "../schema/store-schema.ts";
import { readCommitted } from "../server/pinned-settings.ts";
import { repeatWhileRefused } from "../server/repeat-while-refused.ts";
import type { Row, Session } from "../server/session.ts";
import { dayFunctionsSql } from "./day-functions.ts";
import { distribute, isCitus } from "./distribute.ts";

// Milliseconds that deletions wait with a change of the partitions for its locks.
const dayLockMs = 50;

/** Makes and drops partitions of records that Citus has spread. */
export function spreadDays({ quoted }: StoreSchema): RecordDays {
  return {
    make: async (session, keptMs) => void (await callLocking(session, `${quoted}.plantstore_make_days`, keptMs)),
    dropOld: async (session, keptMs) => {
      const [[count = null] = []] = await callLocking(session, `${quoted}.plantstore_drop_day`, keptMs);
      return { count: Number(count), isMore: count !== null };
    },
  };
}

async function callLocking(session: Session, name: string, keptMs: number): Promise<readonly Row[]> {
  return await lockingOnWorkers(session, dayLockMs, readCommitted, () =>
    session.query(`SELECT ${name}($1::interval)`, [`${keptMs} milliseconds`]),
  );
}

/**
 * Runs work in a transaction that waits for locks no longer than this, on workers either. Nor does it keep them: the
 * coordinator ends it when this process hangs before the commit.
 */
async function lockingOnWorkers<Result>(
  session: Session,
  ms: number,
  characteristics: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const begin = `${characteristics}; SET LOCAL idle_in_transaction_session_timeout = '5s'`;
  return await session.transact(begin, async () => {
    await session.run("SET LOCAL citus.propagate_set_commands = 'local'");
    await session.run(`SET LOCAL lock_timeout = ${ms}`);
    return await work();
  });
}

// From PostgreSQL 17 on, no table with an identity can become a partition, and Citus lets none lose it.
const canDivideSql = `
  SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('plants') AND partmethod = 'h'
    AND current_setting('server_version_num')::integer < 170000 AND NOT EXISTS (${isByDaySql})`;

// Names what belongs to the table itself, and would go on with one partition of it alone.
const dependentsSql = `
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

const triggersSql = `
  SELECT string_agg(DISTINCT 'the trigger ' || tgname, ', ') FROM (
    SELECT tgname FROM pg_trigger WHERE tgrelid = 'deletions'::regclass AND NOT tgisinternal
    UNION ALL SELECT NULLIF(result, '') FROM run_command_on_shards('deletions', $$
      SELECT string_agg(tgname, ', ') FROM pg_trigger WHERE tgrelid = '%s'::regclass AND NOT tgisinternal $$)
  ) AS trigger`;

/** Spreads the tables of a store as {@link distribute} does, and divides deletion records by day where that can be. */
export async function spreadByDay(session: Session, schema: StoreSchema, onWaiting?: OnWaiting): Promise<void> {
  await repeatWhileRefused(session, () => distribute(session, schema));
  await repeatWhileRefused(session, async () => {
    await divideSpreadByDay(session, schema, onWaiting);
    // Once they are divided, the function that deletes is another one.
    await distribute(session, schema);
  });
}

/**
 * Divides the deletion records by day, beside servers that keep deleting. Does nothing if they are divided already, or
 * not spread. The step that is interrupted is taken again by the next attempt.
 *
 * @throws StoreOpenError naming what keeps the table from being replaced
 */
async function divideSpreadByDay(session: Session, schema: StoreSchema, onWaiting?: OnWaiting): Promise<void> {
  if (!(await isCitus(session)) || (await queryIn(session, schema, canDivideSql)).length === 0) return;
  const found = [...(await queryIn(session, schema, dependentsSql)), ...(await queryIn(session, schema, triggersSql))];
  const dependents = found.flatMap(([what]) => what ?? []);
  if (dependents.length > 0) {
    const what = dependents.join(", ");
    throw new StoreOpenError(`cannot replace the table deletions: drop ${what}, and create it again after the migration`);
  }
  for (const sql of spreadByDaySql) {
    const begin = `${readCommitted}; ${searchPathSql(schema)}`;
    const step = (): Promise<void> => lockingOnWorkers(session, tableLockMs, begin, () => session.run(sql));
    await runBesideServers(session, step, { schema, table: "deletions" }, onWaiting);
  }
}

// A column that is to divide records, and NULL in all that are there. The table with its rows becomes the partition of
// records that are dropped one by one: those with an idempotency key, which its index keeps from being used twice, whatever
// the day, and those of before. So a row of it has no mark, which is checked beside servers: attaching it reads no row.
const markSql = `
  DO $$ BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ALTER TABLE deletions ADD COLUMN IF NOT EXISTS day date;
    IF NOT EXISTS (
      SELECT FROM pg_constraint WHERE conrelid = 'deletions'::regclass AND conname = 'deletions_not_by_day'
    ) THEN
      ALTER TABLE deletions ADD CONSTRAINT deletions_not_by_day CHECK (day IS NULL) NOT VALID;
    END IF;
  END $$`;

// Checks that it is.
const validateSql = `
  DO $$ BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ALTER TABLE deletions VALIDATE CONSTRAINT deletions_not_by_day;
  END $$`;

// The tables are made for their owner, who may be a role of the user that migrates, and in the schema of the table, which
// need not be the first of the search_path.
const inSchemaOfOwner = `
    SELECT relowner::regrole::text AS owner, relnamespace::regnamespace::text AS schema INTO one
      FROM pg_class WHERE oid = 'deletions'::regclass;
    PERFORM set_config('search_path', one.schema || ', pg_temp', true);
    IF one.owner <> quote_ident(current_user) THEN EXECUTE 'SET LOCAL ROLE ' || one.owner; END IF;`;

// Numbers come from the same sequence as before, which all may use as they use that of an identity. The indexes of other
// partitions are their own: one of the parent would be built for this one, too, while it is locked.
const divideSql = `
  DO $divide$ DECLARE grants text[] := '{}'; one record; sql text; BEGIN
    IF EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ${inSchemaOfOwner}
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    ${dayFunctionsSql}
    CREATE TABLE deletions_all (LIKE deletions INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY LIST (day);
    sql := pg_get_serial_sequence('deletions', 'seq');
    EXECUTE format('ALTER TABLE deletions_all ALTER COLUMN seq SET DEFAULT nextval(%L)', sql);
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO PUBLIC', sql);
    ${grantsSql}
    PERFORM create_distributed_table('deletions_all', 'plant_id', colocate_with => 'plants');
    CREATE TABLE deletions_other_days PARTITION OF deletions_all (PRIMARY KEY (plant_id, seq)) DEFAULT;
    ALTER TABLE deletions RENAME TO deletions_by_row;
    ALTER TABLE deletions_all RENAME TO deletions;
    ALTER TABLE deletions ATTACH PARTITION deletions_by_row FOR VALUES IN (NULL);
    ${closeSql("'deletions'::regclass, 'deletions_by_row'::regclass, 'deletions_other_days'::regclass")}
    FOREACH sql IN ARRAY grants LOOP EXECUTE sql; END LOOP;
    PERFORM plantstore_make_day((now() AT TIME ZONE 'UTC')::date, 1);
    ALTER TABLE deletions_by_row DROP CONSTRAINT deletions_not_by_day;
  END $divide$`;

/**
 * The steps in which a spread table of records is divided by day. Each is one transaction, which locks the table for a
 * moment, and changes nothing when it is repeated.
 */
export const spreadByDaySql: readonly string[] = [markSql, validateSql, divideSql];
