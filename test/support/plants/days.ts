import { Client } from "pg";
import { expect } from "vitest";
import { tablesSql } from "../../../src/stores/postgres/schema/tables.ts";
import { configOf, type PostgresServer, runSql } from "./postgres-server.ts";

/** Creates a store whose records are in one table, as on a server without partitions, and returns its URL. */
export async function createUndividedStore(server: PostgresServer, plants = 0): Promise<string> {
  const url = await server.createSchema();
  await runSql(url, `${tablesSql(false)}; INSERT INTO plants SELECT generate_series(1, ${plants})`);
  return url;
}

/** Returns the partition name for the day that is this many days from today (UTC). */
export async function dayFromNow(url: string, days: number): Promise<string> {
  const [row] = await runSql(
    url,
    `SELECT to_char(now() AT TIME ZONE 'UTC' + interval '${days} days', '"deletions_"YYYYMMDD') AS name`,
  );
  return String(row?.["name"]);
}

/** Creates a day's partition, with this many records at noon. */
export async function addDay(url: string, days: number, records: number): Promise<string> {
  const name = await dayFromNow(url, days);
  const start = `(date_trunc('day', now() AT TIME ZONE 'UTC') + interval '${days} days') AT TIME ZONE 'UTC'`;
  await runSql(
    url,
    `DO $$ BEGIN EXECUTE format('CREATE TABLE ${name} PARTITION OF deletions_by_day FOR VALUES FROM (%L) TO (%L)',
       ${start}, ${start} + interval '1 day'); END $$;
     INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, by_day)
     SELECT id, ${start} + interval '12 hours', '', '', gen_random_uuid(), true FROM generate_series(1, ${records}) AS id`,
  );
  return name;
}

/** Returns how many records each non-empty partition has. */
export async function recordsOf(url: string): Promise<Record<string, number>> {
  const rows = await runSql(
    url,
    "SELECT tableoid::regclass::text AS name, count(*) FROM deletions GROUP BY 1 ORDER BY 1",
  );
  return Object.fromEntries(rows.map(({ name, count }) => [String(name), Number(count)]));
}

export async function partitionsOf(url: string): Promise<readonly unknown[]> {
  const rows = await runSql(
    url,
    "SELECT relid::regclass::text AS name FROM pg_partition_tree('deletions') WHERE isleaf ORDER BY 1",
  );
  return rows.map(({ name }) => name);
}

/**
 * Drops a day's partition on another connection after `work` has selected it and before `work` drops it. For this, a
 * view that waits replaces the version row that `work` must lock.
 */
export async function dropMeanwhile<Result>(url: string, name: string, work: () => Promise<Result>): Promise<Result> {
  const other = new Client(configOf(url));
  await other.connect();
  await other.query(`
    CREATE FUNCTION its_turn() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
      WHILE NOT pg_try_advisory_xact_lock_shared(35) LOOP PERFORM pg_sleep(0.01); END LOOP;
      RETURN true;
    END $$;
    ALTER TABLE plantstore_schema RENAME TO plantstore_version;
    CREATE VIEW plantstore_schema AS SELECT version FROM plantstore_version WHERE its_turn();
    SELECT pg_advisory_lock(35)`);
  const working = work();
  const waits = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
  await expect.poll(async () => (await other.query(waits)).rows).not.toEqual([]);
  await other.query(`DROP TABLE ${name}`);
  await other.query("SELECT pg_advisory_unlock(35)");
  await other.end();
  return await working;
}
