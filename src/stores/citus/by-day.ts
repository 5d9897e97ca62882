import { StoreOpenError } from "../contract/store-open-error.ts";
import type { RecordDays } from "../postgres/delete/placement.ts";
import { type OnWaiting, runOnline, tableLockMs } from "../postgres/schema/online-migration.ts";
import { closeSql } from "../postgres/schema/day-functions.ts";
import { grantsSql, partitionedByDayQuery } from "../postgres/schema/merge-partitions.ts";
import { searchPathSql, type StoreSchema } from "../postgres/schema/store-schema.ts";
import { readCommitted } from "../postgres/server/pinned-settings.ts";
import { retryTransientErrors } from "../postgres/server/retry-transient-errors.ts";
import type { Row, Session } from "../postgres/server/session.ts";
import { createDayFunctionsSql } from "./day-functions.ts";
import { distribute, isCitus, lockedBegin } from "./distribute.ts";

// The lock timeout for changing the partitions, in milliseconds. The timeout is short because deletions queue behind
// the lock.
const dayLockMs = 50;

/** Creates and drops record partitions that Citus has distributed. */
export function distributedDays({ quoted }: StoreSchema): RecordDays {
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
 * Runs work in a transaction with a lock timeout, also on workers. If this process hangs before the commit, the
 * coordinator aborts the transaction, which releases its locks.
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

// Since PostgreSQL 17, a table with an identity column cannot become a partition, and Citus cannot drop the identity.
const canPartitionSql = `
  SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('plants') AND partmethod = 'h'
    AND current_setting('server_version_num')::integer < 170000 AND NOT EXISTS (${partitionedByDayQuery})`;

// Objects that depend on the table. After the table is replaced, they would refer to only one partition.
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

/** Distributes a store's tables as {@link distribute} does, and partitions deletion records by day if possible. */
export async function distributeByDay(session: Session, schema: StoreSchema, onWaiting?: OnWaiting): Promise<void> {
  await retryTransientErrors(session, () => distribute(session, schema));
  await retryTransientErrors(session, async () => {
    await partitionByDay(session, schema, onWaiting);
    // Partitioned records require a different function for deleting.
    await distribute(session, schema);
  });
}

/**
 * Partitions the deletion records by day, while servers keep deleting. Does nothing if they are already partitioned, or
 * not distributed. An interrupted step is run again by the next attempt.
 *
 * @throws StoreOpenError naming the objects that prevent replacing the table
 */
async function partitionByDay(session: Session, schema: StoreSchema, onWaiting?: OnWaiting): Promise<void> {
  const queryInSchema = (sql: string): Promise<readonly Row[]> =>
    session.transact(`${readCommitted}; ${searchPathSql(schema)}`, () => session.query(sql));
  if (!(await isCitus(session)) || (await queryInSchema(canPartitionSql)).length === 0) return;
  const dependents = [...(await queryInSchema(dependentsSql)), ...(await queryInSchema(triggersSql))];
  const names = dependents.flatMap(([name]) => name ?? []).join(", ");
  if (names !== "") {
    throw new StoreOpenError(
      `cannot replace the table deletions: drop ${names}, and create it again after the migration`,
    );
  }
  for (const sql of partitionByDaySql) {
    const step = (): Promise<void> =>
      lockingOnWorkers(session, tableLockMs, lockedBegin(schema), () => session.run(sql));
    await runOnline(session, step, { schema, table: "deletions" }, onWaiting);
  }
}

// Adds the column to partition by. The table becomes the partition for NULL, whose records are dropped row by row:
// existing ones, and those with an idempotency key, because its index prevents using a key twice on any day. The
// constraint is validated while servers run, so that attaching the partition does not read its rows.
const markSql = `
  DO $$ BEGIN
    IF EXISTS (${partitionedByDayQuery}) THEN RETURN; END IF;
    ALTER TABLE deletions ADD COLUMN IF NOT EXISTS day date;
    IF NOT EXISTS (
      SELECT FROM pg_constraint WHERE conrelid = 'deletions'::regclass AND conname = 'deletions_not_by_day'
    ) THEN
      ALTER TABLE deletions ADD CONSTRAINT deletions_not_by_day CHECK (day IS NULL) NOT VALID;
    END IF;
  END $$`;

const validateSql = `
  DO $$ BEGIN
    IF EXISTS (${partitionedByDayQuery}) THEN RETURN; END IF;
    ALTER TABLE deletions VALIDATE CONSTRAINT deletions_not_by_day;
  END $$`;

// The new tables get the existing table's owner and schema. The owner may be a role that the migrating user is a member
// of, and the schema may not be the first in the search_path.
const ownedObjectsCondition = `
    SELECT relowner::regrole::text AS owner, relnamespace::regnamespace::text AS schema INTO one
      FROM pg_class WHERE oid = 'deletions'::regclass;
    PERFORM set_config('search_path', one.schema || ', pg_temp', true);
    IF one.owner <> quote_ident(current_user) THEN EXECUTE 'SET LOCAL ROLE ' || one.owner; END IF;`;

// The sequence stays the same, and every role may use it, as with an identity column. Each new partition gets its own
// indexes. An index on the parent would also be built on this partition, while it is locked.
const partitionSql = `
  DO $divide$ DECLARE grants text[] := '{}'; one record; sql text; BEGIN
    IF EXISTS (${partitionedByDayQuery}) THEN RETURN; END IF;
    ${ownedObjectsCondition}
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    ${createDayFunctionsSql}
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

/** The steps to partition a distributed table by day: idempotent transactions, which lock the table briefly. */
export const partitionByDaySql: readonly string[] = [markSql, validateSql, partitionSql];
