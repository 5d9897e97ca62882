import { migrations } from "../../../src/plantstore/plants/postgres/schema/migrations.ts";
import { type PostgresServer, runSql } from "./postgres-server.ts";

/** A store of the release before, with these plants. */
export async function createStoreBefore(server: PostgresServer, plants = 0): Promise<string> {
  const url = await server.createSchema();
  for (const { sql, index } of migrations.slice(0, 3))
    await runSql(url, `${sql}; ${index?.create ?? ""}`.replace("CONCURRENTLY", ""));
  await runSql(
    url,
    `UPDATE plantstore_schema SET version = 3; INSERT INTO plants SELECT generate_series(1, ${plants})`,
  );
  return url;
}

/** The name of the partition of the day that begins this many days from today's (UTC). */
export async function dayFromNow(url: string, days: number): Promise<string> {
  const [row] = await runSql(
    url,
    `SELECT to_char(now() AT TIME ZONE 'UTC' + interval '${days} days', '"deletions_"YYYYMMDD') AS name`,
  );
  return String(row?.["name"]);
}

/** Makes the partition of a day, with this many records of its noon. */
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

/** How many records each partition has that has any. */
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
