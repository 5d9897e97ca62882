import { closeSql, createDayFunctionsSql } from "./day-functions.ts";

// plant_id is not unique, because a restored plant can be deleted again.
const recordColumns = `
  plant_id bigint NOT NULL,
  deleted_at timestamptz NOT NULL DEFAULT now(),
  subject text NOT NULL,
  request_id text NOT NULL,
  batch uuid NOT NULL,
  idempotency_key text`;

const numberedBy = "seq bigint GENERATED ALWAYS AS IDENTITY";

/** Creates a record table's indexes. Retries and imports search by plant. `deletions` and retention search by time. */
const recordIndexesSql = (table: string): string => `
  CREATE INDEX ${table}_by_plant ON ${table} (plant_id);
  CREATE INDEX ${table}_by_time ON ${table} (deleted_at);`;

// The index lets only one of several processes use a key, and has no entries for deletions without a key.
const keyIndexSql = (table: string): string =>
  `CREATE UNIQUE INDEX deletions_by_key ON ${table} (idempotency_key) WHERE idempotency_key IS NOT NULL;`;

const oneTableSql = `
  CREATE TABLE deletions (${numberedBy} PRIMARY KEY, ${recordColumns});
  ${recordIndexesSql("deletions")}
  ${keyIndexSql("deletions")}`;

// Dropping a partition costs a thousandth of deleting its rows. Records with an idempotency key are all in the
// partition deletions_by_row. So the index on that partition also prevents using a key twice on different days.
const partitionsSql = `
  CREATE TABLE deletions_by_row (
    seq bigint CONSTRAINT deletions_pkey PRIMARY KEY, ${recordColumns}, by_day boolean);
  ${recordIndexesSql("deletions_by_row")}
  ${keyIndexSql("deletions_by_row")}
  CREATE TABLE deletions_by_day (seq bigint NOT NULL, ${recordColumns}, by_day boolean) PARTITION BY RANGE (deleted_at);
  ${recordIndexesSql("deletions_by_day")}
  CREATE TABLE deletions_other_days PARTITION OF deletions_by_day DEFAULT;
  ALTER TABLE deletions_other_days REPLICA IDENTITY FULL;
  CREATE TABLE deletions (${numberedBy}, ${recordColumns}, by_day boolean) PARTITION BY LIST (by_day);
  ${recordIndexesSql("deletions")}
  ALTER TABLE deletions ATTACH PARTITION deletions_by_row FOR VALUES IN (NULL);
  ALTER TABLE deletions ATTACH PARTITION deletions_by_day FOR VALUES IN (true);
  DO $close$ DECLARE one record; BEGIN
    ${closeSql("'deletions_by_row'::regclass, 'deletions_by_day'::regclass, 'deletions_other_days'::regclass")}
  END $close$;
  ${createDayFunctionsSql}
  SELECT plantstore_make_day((now() AT TIME ZONE 'UTC')::date);`;

/**
 * Returns the statements that create the tables for schema version 1, in the first schema in the `search_path`. Without
 * partitions, the statements create plain tables and b-trees, for other databases with the PostgreSQL protocol.
 *
 * @param isByDay - whether deletion records are partitioned by day, which requires PostgreSQL itself
 */
export const tablesSql = (isByDay: boolean): string => `
  CREATE TABLE plantstore_schema (version integer PRIMARY KEY, oldest_server integer NOT NULL);
  INSERT INTO plantstore_schema (version, oldest_server) VALUES (1, 1);
  CREATE TABLE plants (id bigint PRIMARY KEY);
  ${isByDay ? partitionsSql : oneTableSql}`;
