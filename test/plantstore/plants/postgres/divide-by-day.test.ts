import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePostgres } from "../../../../src/plantstore/plants/postgres/all-plants/plant-database.ts";
import { byDaySql } from "../../../../src/plantstore/plants/postgres/schema/by-day.ts";
import { gatherSql } from "../../../../src/plantstore/plants/postgres/schema/gather.ts";
import { migrations } from "../../../../src/plantstore/plants/postgres/schema/migrations.ts";
import { openPostgresStore } from "../../../../src/plantstore/plants/postgres/store.ts";
import { addDay, createStoreBefore, dayFromNow, recordsOf } from "../../../support/plants/days.ts";
import { deleteCall } from "../../../support/plants/delete-call.ts";
import { openClient, type PostgresServer, runSql, startPostgres } from "../../../support/plants/postgres-server.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

/** How the release before deletes, which knows of no days. */
const deleteBeforeSql = `
  WITH deleted AS (DELETE FROM plants WHERE id = $1 RETURNING id)
  INSERT INTO deletions (plant_id, batch, subject, request_id, idempotency_key)
  SELECT id, gen_random_uuid(), 'ann', 'r', $2 FROM deleted`;

// Its body is kept as what it refers to, not as a text.
const countedSql = `
  CREATE FUNCTION counted() RETURNS bigint LANGUAGE SQL BEGIN ATOMIC SELECT count(*) FROM deletions; END`;

/** The bounds of the partitions of days, in the zone and style of the test. */
async function boundsOf(url: string): Promise<unknown[]> {
  const rows = await runSql(
    url,
    `SELECT relname || ' ' || pg_get_expr(relpartbound, oid) AS bounds FROM pg_class
     WHERE relkind = 'r' AND relname ~ '^deletions_[0-9]' AND pg_table_is_visible(oid) ORDER BY relname`,
  );
  return rows.map(({ bounds }) => bounds);
}

describe("dividing records by day", () => {
  test("lets servers of the release before delete, with their keys, and loses no record", async () => {
    const plants = 600;
    const url = await createStoreBefore(server, plants);
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key)
       SELECT -id, 'ann', 'r', gen_random_uuid(), 'old' || id FROM generate_series(1, 1000) AS id`,
    );
    const before = await openClient(url, "SET lock_timeout = '100ms'");
    let isMigrated = false;
    const migrating = migratePostgres(url).finally(() => {
      isMigrated = true;
    });
    let [deleted, whileMigrating] = [0, 0];
    for (let id = 1; id <= plants; id++) {
      // As its store does after a fault, it repeats what has met a lock.
      for (let done = false; !done;) {
        try {
          const { rowCount } = await before.query(deleteBeforeSql, [id, id % 2 === 0 ? `new${id}` : null]);
          deleted += rowCount ?? 0;
          done = true;
        } catch (fault) {
          expect(fault).toMatchObject({ code: "55P03" });
        }
      }
      if (!isMigrated) whileMigrating++;
    }
    await expect(migrating).resolves.toEqual({ from: 3, to: migrations.length });
    expect(whileMigrating).toBeGreaterThan(0);
    const used = before.query(deleteBeforeSql, [-1, "old1"]);
    await expect(used).resolves.toMatchObject({ rowCount: 0 });
    await runSql(url, "INSERT INTO plants VALUES (-1)");
    await expect(before.query(deleteBeforeSql, [-1, "old1"])).rejects.toMatchObject({ constraint: "deletions_by_key" });
    await before.end();
    const [counts] = await runSql(url, "SELECT count(*), count(DISTINCT seq) AS numbers FROM deletions");
    expect({ deleted, ...counts }).toEqual({ deleted: plants, count: "1600", numbers: "1600" });
    const store = await openPostgresStore({ url });
    await expect(store.delete(-1n, deleteCall({ subject: "ann", idempotencyKey: "old1" }))).resolves.toBe(true);
    await store.close();
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "-1" }]);
  });

  test.each(byDaySql.map((_, done) => done + 1))("goes on where it was killed after step %d", async (done) => {
    const url = await createStoreBefore(server, 1);
    await runSql(url, deleteBeforeSql.replace("$1", "1").replace("$2", "'a'"));
    for (const sql of byDaySql.slice(0, done)) await runSql(url, sql);
    // The release before goes on.
    await runSql(url, "INSERT INTO plants VALUES (2)");
    await runSql(url, deleteBeforeSql.replace("$1", "2").replace("$2", "'b'"));
    await expect(migratePostgres(url)).resolves.toEqual({ from: 3, to: migrations.length });
    expect(await recordsOf(url)).toEqual({ deletions_by_row: 2 });
    for (const sql of byDaySql) await runSql(url, sql);
    expect(await recordsOf(url)).toEqual({ deletions_by_row: 2 });
  });

  test("hands triggers and privileges on", async () => {
    const url = await createStoreBefore(server);
    await runSql(
      url,
      `CREATE ROLE auditor; GRANT SELECT ON deletions TO auditor WITH GRANT OPTION; GRANT INSERT ON deletions TO PUBLIC;
       CREATE TABLE audited (what text);
       CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO audited VALUES (TG_NAME || TG_LEVEL); RETURN NULL; END $$;
       CREATE TRIGGER of_row AFTER INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION audit();
       CREATE TRIGGER of_statement AFTER INSERT ON deletions EXECUTE FUNCTION audit();
       CREATE TRIGGER off AFTER INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION audit();
       ALTER TABLE deletions DISABLE TRIGGER off`,
    );
    const privileges = "SELECT relacl::text FROM pg_class WHERE oid = 'deletions'::regclass";
    const before = await runSql(url, privileges);
    await migratePostgres(url);
    expect(await runSql(url, privileges)).toEqual(before);
    await addDay(url, -1, 1);
    await runSql(
      url,
      "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())",
    );
    const audited = await runSql(url, "SELECT what FROM audited ORDER BY what");
    expect(audited.map(({ what }) => what)).toEqual([
      "of_rowROW",
      "of_rowROW",
      "of_statementSTATEMENT",
      "of_statementSTATEMENT",
    ]);
    const partitions = "SELECT has_table_privilege('auditor', 'deletions_by_row', 'SELECT') AS may";
    expect(await runSql(url, partitions)).toEqual([{ may: false }]);
  });

  test("lets nobody read by privileges that tables have by default", async () => {
    const url = await createStoreBefore(server);
    await runSql(url, "CREATE ROLE reader; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader, PUBLIC");
    try {
      await migratePostgres(url);
    } finally {
      await runSql(url, "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM reader, PUBLIC");
    }
    const readable = `SELECT relname FROM pg_class WHERE relname LIKE 'deletions%' AND relkind IN ('r', 'p')
      AND pg_table_is_visible(oid) AND has_table_privilege('reader', oid, 'SELECT')`;
    expect(await runSql(url, readable)).toEqual([]);
  });

  test("keeps columns that somebody has added, with what they are made from", async () => {
    const url = await createStoreBefore(server, 1);
    await runSql(url, "ALTER TABLE deletions ADD COLUMN twice bigint GENERATED ALWAYS AS (2 * plant_id) STORED");
    await migratePostgres(url);
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(await runSql(url, "SELECT twice FROM deletions")).toEqual([{ twice: "2" }]);
  });

  test("is done in the schema of the table, although another comes first in the search_path", async () => {
    const url = await createStoreBefore(server, 1);
    const [row] = await runSql(url, "SELECT current_schema() AS name");
    await runSql(url, "CREATE SCHEMA empty");
    const through = url.replace(/search_path.*$/, `search_path%3Dempty,${String(row?.["name"])}`);
    await expect(migratePostgres(through)).resolves.toEqual({ from: 3, to: migrations.length });
    const store = await openPostgresStore({ url: through });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(await recordsOf(url)).toEqual({ [await dayFromNow(url, 0)]: 1 });
    expect(await runSql(url, "SELECT FROM pg_class WHERE relnamespace = 'empty'::regnamespace")).toEqual([]);
  });

  test("makes days of UTC, whatever the zone and the style of dates", async () => {
    const [url, url2] = [await createStoreBefore(server), await createStoreBefore(server)];
    await migratePostgres(url);
    // The server writes IST for the zone, and reads it as that of Israel.
    await migratePostgres(`${url2}%20-cDateStyle%3DSQL,DMY%20-cTimeZone%3DAsia/Kolkata`);
    expect(await boundsOf(url2)).toEqual(await boundsOf(url));
  });

  test.each([
    { what: "the view or rule seen", sql: "CREATE VIEW seen AS SELECT plant_id FROM deletions" },
    { what: "the constraint owned", sql: "CREATE TABLE other (seq bigint CONSTRAINT owned REFERENCES deletions)" },
    { what: "the constraint named", sql: "ALTER TABLE deletions ADD CONSTRAINT named CHECK (subject <> 'x')" },
    { what: "the policy mine", sql: "CREATE POLICY mine ON deletions USING (true)" },
    { what: "the function counted()", sql: countedSql },
    { what: "row level security", sql: "ALTER TABLE deletions ENABLE ROW LEVEL SECURITY" },
    { what: "the publication told", sql: "CREATE PUBLICATION told FOR TABLE deletions" },
    { what: "the table child", sql: "CREATE TABLE child () INHERITS (deletions)" },
    { what: "privileges on columns", sql: "GRANT SELECT (plant_id) ON deletions TO PUBLIC" },
  ])("is refused while it would leave $what behind", async ({ what, sql }) => {
    const url = await createStoreBefore(server);
    await runSql(url, sql);
    await expect(migratePostgres(url)).rejects.toThrow(
      `: the table deletions is replaced: drop ${what}, and create that again`,
    );
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version: 3 }]);
  });

  test("is undone for Citus, with all records, triggers and privileges", async () => {
    const url = await server.createPlants([1n, 2n]);
    const store = await openPostgresStore({ url });
    await store.delete(1n, deleteCall());
    await store.delete(2n, deleteCall({ idempotencyKey: "a" }));
    await store.close();
    await runSql(
      url,
      `GRANT SELECT ON deletions TO PUBLIC; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER told AFTER INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION nothing()`,
    );
    await runSql(url, gatherSql);
    await runSql(url, gatherSql);
    const insert = "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (3, '', '', gen_random_uuid())";
    await runSql(url, insert);
    expect(await recordsOf(url)).toEqual({ deletions: 3 });
    const [found] = await runSql(
      url,
      `SELECT relkind, relacl::text LIKE '%,=r/%' AS granted, (SELECT count(DISTINCT seq) FROM deletions) AS numbers,
         (SELECT string_agg(tgname, ',') FROM pg_trigger WHERE tgrelid = pg_class.oid) AS triggers,
         (SELECT count(*) FROM pg_class AS rest WHERE relnamespace = pg_class.relnamespace AND relname LIKE 'deletions\\_%'
          AND relkind <> 'i') AS rest
       FROM pg_class WHERE oid = 'deletions'::regclass`,
    );
    expect(found).toEqual({ relkind: "r", granted: true, numbers: "3", triggers: "told", rest: "1" });
  });

  test("is undone beside a deletion without using its number again", async () => {
    const url = await server.createPlants();
    const insert = "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (3, '', '', gen_random_uuid())";
    const deleting = await openClient(url, `BEGIN; ${insert}`);
    const gathering = runSql(url, gatherSql);
    const waiting = "SELECT FROM pg_locks WHERE relation = 'deletions'::regclass AND NOT granted";
    await expect.poll(() => runSql(url, waiting)).not.toEqual([]);
    await deleting.query(`${insert}; COMMIT`);
    await deleting.end();
    await gathering;
    await runSql(url, insert);
    expect(await runSql(url, "SELECT count(DISTINCT seq) FROM deletions")).toEqual([{ count: "3" }]);
  });
});
