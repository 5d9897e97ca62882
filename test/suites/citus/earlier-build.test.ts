import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { laterSteps, latestVersion } from "../../support/plants/later-steps.ts";
import { openClient, runSql } from "../../support/plants/postgres-server.ts";
import { type CitusCluster, startCitus } from "./citus-cluster.ts";

const [dropEmpty = ""] = blocksRunBy("test/suites/citus/earlier-build.test.ts").map(({ text }) => text);

let cluster: CitusCluster;
beforeAll(async () => {
  cluster = await startCitus();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const columns = "LIKE deletions INCLUDING DEFAULTS INCLUDING GENERATED";

/** How builds before release 0.1.0 kept deletion records in partitions by day. */
const partitionSql = [
  "ALTER TABLE plantstore_schema DROP CONSTRAINT plantstore_schema_pkey",
  "ALTER TABLE deletions ADD COLUMN day date",
  `CREATE TABLE deletions_all (${columns}) PARTITION BY LIST (day)`,
  "ALTER TABLE deletions_all ALTER COLUMN seq SET DEFAULT nextval('deletions_seq_seq')",
  "SELECT create_distributed_table('deletions_all', 'plant_id', colocate_with => 'plants')",
  "CREATE TABLE deletions_other_days PARTITION OF deletions_all (PRIMARY KEY (plant_id, seq)) DEFAULT",
  "ALTER TABLE deletions RENAME TO deletions_by_row",
  "ALTER TABLE deletions_all RENAME TO deletions",
  "ALTER TABLE deletions ATTACH PARTITION deletions_by_row FOR VALUES IN (NULL)",
  ...["20261101", "20261102"].flatMap((day) => [
    `CREATE TABLE deletions_${day} (${columns}, PRIMARY KEY (plant_id, seq))`,
    `SELECT create_distributed_table('deletions_${day}', 'plant_id', colocate_with => 'plants')`,
    `ALTER TABLE deletions ATTACH PARTITION deletions_${day} FOR VALUES IN ('${day}')`,
  ]),
  "CREATE OR REPLACE FUNCTION plantstore_delete(" +
    "one bigint, ids bigint[], subjects text[], request_ids text[], token uuid, keys text[], skips boolean, " +
    "OUT deleted bigint[], OUT locked bigint[], OUT kept bigint[]" +
    ") LANGUAGE plpgsql AS $$ BEGIN RAISE 'of another release'; END $$",
];

const insertSql = (day: string): string => `
  INSERT INTO deletions (plant_id, subject, request_id, batch, day) VALUES (7, '', '', gen_random_uuid(), '${day}')`;

/** Creates an earlier build's store with a record for 2026-11-01 and none for 2026-11-02, and migrates the store. */
async function createStore(): Promise<string> {
  const url = await cluster.createSchema();
  await migratePostgres(url);
  await runSql(url, "INSERT INTO plants SELECT generate_series(1, 20)");
  for (const sql of partitionSql) await runSql(url, sql);
  await runSql(url, insertSql("2026-11-01"));
  await migratePostgres(url);
  return url;
}

async function partitionsOf(url: string): Promise<unknown[]> {
  const rows = await runSql(
    url,
    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'deletions'::regclass ORDER BY 1",
  );
  return rows.map(({ relname }) => relname);
}

const allPartitions = ["deletions_20261101", "deletions_20261102", "deletions_by_row", "deletions_other_days"];

describe("a Citus store with daily partitions from an earlier build", () => {
  test("deletes plants, and keeps every record when empty partitions are dropped", async () => {
    const url = await createStore();
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    expect(await partitionsOf(url)).toEqual(allPartitions);
    await runSql(url, dropEmpty);
    expect(await partitionsOf(url)).toEqual(["deletions_20261101", "deletions_by_row"]);
    expect(await runSql(url, "SELECT plant_id FROM deletions ORDER BY 1")).toEqual([
      { plant_id: "1" },
      { plant_id: "7" },
    ]);
    await expect(store.delete(2n, deleteCall({ idempotencyKey: "key" }))).resolves.toBe(true);
    await store.close();
    await expect(migratePostgres(url, undefined, laterSteps)).resolves.toEqual({ from: 1, to: latestVersion });
  });

  test.each([
    {
      name: "an already checked partition",
      day: "2027-01-01",
      error: "a record was added to deletions_other_days",
    },
    { name: "a partition checked later", day: "2026-11-02", error: undefined },
  ])("keeps a record added to $name while empty partitions are dropped", async ({ day, error }) => {
    const url = await createStore();
    const writer = await openClient(url, "BEGIN");
    await writer.query(insertSql(day));
    const dropping = runSql(url, dropEmpty).then(
      () => undefined,
      (fault: Error) => fault.message,
    );
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DETACH PARTITION%'";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    await writer.query("COMMIT");
    await writer.end();
    expect(await dropping).toBe(error);
    const records = "SELECT day::text FROM deletions ORDER BY 1";
    expect(await runSql(url, records)).toEqual([{ day: "2026-11-01" }, { day }]);
    await runSql(url, dropEmpty);
    expect(await runSql(url, records)).toEqual([{ day: "2026-11-01" }, { day }]);
    expect(await partitionsOf(url)).toHaveLength(3);
  });
});
