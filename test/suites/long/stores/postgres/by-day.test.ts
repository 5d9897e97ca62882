import { describe, expect, test } from "vitest";
import { migratePostgres, openPostgresDatabase } from "../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { Retention } from "../../../../../src/stores/postgres/all-plants/retention.ts";
import { singleServerByDay } from "../../../../../src/stores/postgres/delete/single-server.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import type { Upkeep } from "../../../../../src/stores/contract/upkeep.ts";
import { collect } from "../../../../../protoport/testing/src/collect.ts";
import { startCuttingProxy } from "../../../../support/plants/cutting-proxy.ts";
import {
  addDay,
  createUndividedStore,
  dayFromNow,
  dropMeanwhile,
  partitionsOf,
  recordsOf,
} from "../../../../support/plants/days.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { openClient, runSql } from "../../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../../support/plants/schema-of.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

const hourMs = 3_600_000;

/** Drops older records once, and returns the reported upkeep. */
async function dropOnce(url: string, keptMs: number): Promise<readonly Upkeep[]> {
  const reports: Upkeep[] = [];
  const retention = new Retention(new Session(readServerUrl(url)), {
    keptMs,
    placementOn: (session) => Promise.resolve(singleServerByDay(schemaOf(session))),
    onUpkeep: (upkeep) => void reports.push(upkeep),
  });
  await expect.poll(() => reports).not.toEqual([]);
  await retention.stop();
  return reports;
}

/** Returns the bounds of the day partitions, in the test's time zone and style. */
async function boundsOf(url: string): Promise<unknown[]> {
  const rows = await runSql(
    url,
    `SELECT relname || ' ' || pg_get_expr(relpartbound, oid) AS bounds FROM pg_class
     WHERE relkind = 'r' AND relname ~ '^deletions_[0-9]' AND pg_table_is_visible(oid) ORDER BY relname`,
  );
  return rows.map(({ bounds }) => bounds);
}

describe("deletion records partitioned by day", () => {
  test("go to their day's partition unless they have a key", async () => {
    const url = await server.createPlants([1n, 2n, 3n, 4n, 5n]);
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await expect(store.delete(2n, deleteCall({ idempotencyKey: "a" }))).resolves.toBe(true);
    // The three deletions run in one statement.
    const together = [
      store.delete(3n, deleteCall()),
      store.delete(4n, deleteCall({ idempotencyKey: "b" })),
      store.delete(5n, deleteCall()),
    ];
    await expect(Promise.all(together)).resolves.toEqual([true, true, true]);
    await store.close();
    expect(await recordsOf(url)).toEqual({ deletions_by_row: 2, [await dayFromNow(url, 0)]: 3 });
    await using database = await openPostgresDatabase(url);
    const listed = (await collect(database.listDeletions())).flat().map(({ plantId }) => String(plantId));
    expect(new Set(listed)).toEqual(new Set(["1", "2", "3", "4", "5"]));
  });

  test("contain an idempotency key only once across all days", async () => {
    const url = await server.createPlants([1n, 2n]);
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall({ idempotencyKey: "a" }))).resolves.toBe(true);
    await runSql(
      url,
      "UPDATE deletions SET deleted_at = deleted_at - interval '80 days'; INSERT INTO plants VALUES (1)",
    );
    await expect(store.delete(1n, deleteCall({ idempotencyKey: "a" }))).resolves.toBe(true);
    await expect(store.delete(2n, deleteCall({ idempotencyKey: "a" }))).rejects.toThrow(/idempotency/i);
    await store.close();
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "1" }, { id: "2" }]);
    const again =
      "INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key) VALUES (9, '', '', gen_random_uuid(), 'a')";
    await expect(runSql(url, again)).rejects.toThrow(/deletions_by_key/);
  });

  test("are dropped with their partition once the day's last record expires", async () => {
    const url = await server.createPlants();
    const days = [await addDay(url, -3, 40), await addDay(url, -2, 30), await addDay(url, -1, 20)];
    const lastedMs = expect.any(Number);
    // The day before yesterday ended less than two days ago.
    expect(await dropOnce(url, 48 * hourMs)).toEqual([{ kind: "records-dropped", count: 40, lastedMs }]);
    expect(await partitionsOf(url)).not.toContain(days[0]);
    expect(await recordsOf(url)).toEqual({ [String(days[1])]: 30, [String(days[2])]: 20 });
    expect(await dropOnce(url, 24 * hourMs)).toEqual([{ kind: "records-dropped", count: 30, lastedMs }]);
    expect(await recordsOf(url)).toEqual({ [String(days[2])]: 20 });
  });

  test("with a key are dropped in slices, which frees their keys", async () => {
    const url = await server.createPlants([1n, 2n]);
    const day = await addDay(url, -1, 30_000);
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
       SELECT id, now() - interval '100 days', '', '', gen_random_uuid(), ':key-' || id FROM generate_series(1, 30000) AS id`,
    );
    const call = deleteCall({ idempotencyKey: ":key-9" });
    const before = await openPostgresStore({ url, deletionsKeptMs: 101 * 24 * hourMs });
    await expect(before.delete(1n, call)).rejects.toThrow(/idempotency/i);
    await before.close();
    expect(await dropOnce(url, 90 * 24 * hourMs)).toMatchObject([{ kind: "records-dropped", count: 30_000 }]);
    expect(await recordsOf(url)).toEqual({ [day]: 30_000 });
    const after = await openPostgresStore({ url });
    await expect(after.delete(1n, call)).resolves.toBe(true);
    await expect(after.delete(2n, call)).rejects.toThrow(/idempotency/i);
    await after.close();
    expect(await recordsOf(url)).toEqual({ [day]: 30_000, deletions_by_row: 1 });
  });

  test("are not dropped while a transaction reads them", async () => {
    const url = await server.createPlants([1n, 2n]);
    const old = await addDay(url, -100, 5);
    const dump = await openClient(url, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM deletions");
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url, onUpkeep: (upkeep) => void reports.push(upkeep) });
    const refused = (): number => server.log.filter((line) => line.includes("due to lock timeout")).length;
    const before = refused();
    await expect.poll(refused).toBeGreaterThan(before);
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await dump.query("COMMIT");
    await dump.end();
    await expect.poll(() => reports).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
    expect(await partitionsOf(url)).not.toContain(old);
    await store.close();
  });

  test("in the undated partition are dropped during a long read", async () => {
    const url = await server.createPlants();
    await addDay(url, -100, 5);
    await runSql(
      url,
      `SELECT plantstore_make_days();
       INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       VALUES (1, now() - interval '100 days', '', '', gen_random_uuid())`,
    );
    const dump = await openClient(url, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM deletions");
    expect(await dropOnce(url, hourMs)).toMatchObject([
      { kind: "records-dropped", count: 1 },
      { kind: "retention-failed", problem: expect.stringContaining("lock timeout") },
    ]);
    await dump.end();
  });

  test("get one partition per day from concurrent processes", async () => {
    const url = await server.createPlants();
    const sessions = Array.from({ length: 8 }, () => new Session(readServerUrl(url)));
    await Promise.all(sessions.map(async (one) => await singleServerByDay(schemaOf(one)).days?.make(one)));
    await Promise.all(sessions.map((session) => session.close()));
    const days = await Promise.all([0, 1, 2, 3].map((ahead) => dayFromNow(url, ahead)));
    expect(await partitionsOf(url)).toEqual([...days, "deletions_by_row", "deletions_other_days"]);
  });

  test("go to the default partition if their day has no partition", async () => {
    const url = await server.createPlants([1n, 2n]);
    await runSql(url, `DROP TABLE ${await dayFromNow(url, 0)}`);
    const store = await openPostgresStore({ url });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    const ahead = await Promise.all([1, 2, 3].map((days) => dayFromNow(url, days)));
    await expect.poll(() => partitionsOf(url)).toEqual([...ahead, "deletions_by_row", "deletions_other_days"]);
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
    expect(await recordsOf(url)).toEqual({ deletions_other_days: 2 });
    await store.close();
    await runSql(url, "UPDATE deletions SET deleted_at = now() - interval '100 days' WHERE plant_id = 1");
    expect(await dropOnce(url, hourMs)).toMatchObject([{ kind: "records-dropped", count: 1 }]);
    expect(await recordsOf(url)).toEqual({ deletions_other_days: 1 });
  });

  test("are found and dropped when a publication covers all tables", async () => {
    const url = await server.createPlants([1n, 2n]);
    await runSql(url, "CREATE PUBLICATION everything FOR ALL TABLES");
    try {
      await using proxy = await startCuttingProxy(server.socketFolder);
      const store = await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) });
      const wasCut = proxy.cutNext("before-reply");
      const deletion = store.delete(1n, deleteCall());
      await wasCut;
      await expect(deletion).resolves.toBe(true);
      await store.close();
      await runSql(
        url,
        `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, by_day)
         VALUES (2, now() - interval '100 days', '', '', gen_random_uuid(), true)`,
      );
      expect(await dropOnce(url, hourMs)).toMatchObject([{ kind: "records-dropped", count: 1 }]);
    } finally {
      await runSql(url, "DROP PUBLICATION everything");
    }
  });

  test("are kept in a partition that was moved to another schema", async () => {
    const url = await server.createPlants();
    const [moved, next] = [await addDay(url, -101, 2), await addDay(url, -100, 5)];
    await runSql(url, `CREATE SCHEMA archive; ALTER TABLE ${moved} SET SCHEMA archive`);
    expect(await dropOnce(url, hourMs)).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    expect(await partitionsOf(url)).not.toContain(next);
    expect(await recordsOf(url)).toEqual({ [`archive.${moved}`]: 2 });
  });

  test("are skipped if another process is dropping their day", async () => {
    const url = await server.createPlants();
    const old = await addDay(url, -100, 5);
    const session = new Session(readServerUrl(url));
    const dropped = await dropMeanwhile(
      url,
      old,
      async () => await singleServerByDay(schemaOf(session)).days?.dropOld(session, hourMs),
    );
    expect(dropped).toEqual({ count: 0, isMore: true });
    await session.close();
  });

  test("are written even if no partition can be created", async () => {
    const url = await server.createPlants([1n]);
    await runSql(
      url,
      `DROP TABLE ${await dayFromNow(url, 0)};
       CREATE FUNCTION fill() RETURNS event_trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
       CREATE EVENT TRIGGER fill ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION fill()`,
    );
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url, onUpkeep: (upkeep) => void reports.push(upkeep) });
    try {
      await expect
        .poll(() => reports)
        .toMatchObject([{ kind: "retention-failed", problem: expect.stringMatching(/No space left/) }]);
      expect(store.problem).toBeUndefined();
      await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
      expect(await recordsOf(url)).toEqual({ deletions_other_days: 1 });
      expect(await partitionsOf(url)).toEqual(["deletions_by_row", "deletions_other_days"]);
    } finally {
      await runSql(url, "DROP EVENT TRIGGER fill");
      await store.close();
    }
  });

  test("in a renamed schema are dropped only after the next migrate", async () => {
    const before = await server.createPlants();
    await addDay(before, -100, 5);
    const [schema] = await runSql(before, "SELECT current_schema() AS name");
    const name = String(schema?.["name"]);
    await runSql(before, `ALTER SCHEMA ${name} RENAME TO renamed; CREATE SCHEMA ${name}`);
    const url = before.replace(name, "renamed");
    await expect(openPostgresStore({ url })).rejects.toThrow(/the schema renamed was renamed: run "plantstore mig/);
    await migratePostgres(url);
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url, onUpkeep: (upkeep) => void reports.push(upkeep) });
    await expect.poll(() => reports).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    await store.close();
  });

  test("can be written and dropped with row privileges only", async () => {
    const url = await server.createPlants([1n]);
    const [row] = await runSql(url, "SELECT current_schema() AS name");
    await runSql(
      url,
      `CREATE ROLE gardener LOGIN; CREATE ROLE visitor LOGIN;
       GRANT USAGE ON SCHEMA ${String(row?.["name"])} TO gardener, visitor;
       GRANT SELECT ON plants, deletions, plantstore_schema TO gardener, visitor;
       GRANT INSERT, UPDATE, DELETE ON plants, deletions TO gardener`,
    );
    const old = await addDay(url, -100, 5);
    const as = (role: string): string => url.replace("user=tester", `user=${role}`);
    const visit = { drop: "SELECT plantstore_drop_day('1 hour')", make: "SELECT plantstore_make_days()" };
    await expect(runSql(as("visitor"), visit.drop)).rejects.toThrow("permission denied for table deletions");
    await expect(runSql(as("visitor"), visit.make)).rejects.toThrow("permission denied for table deletions");
    await expect(runSql(url, `SET ROLE visitor; ${visit.drop}`)).rejects.toThrow(
      "permission denied for table deletions",
    );
    await runSql(url, "RESET ROLE");
    expect(await partitionsOf(url)).toContain(old);
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url: as("gardener"), onUpkeep: (upkeep) => void reports.push(upkeep) });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await expect.poll(() => reports).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    await store.close();
    expect(await recordsOf(url)).toEqual({ [await dayFromNow(url, 0)]: 1 });
    await runSql(url, "REVOKE EXECUTE ON FUNCTION plantstore_make_days() FROM PUBLIC");
    await expect(openPostgresStore({ url: as("gardener") })).rejects.toThrow(
      /: the user lacks privileges: EXECUTE on plantstore_make_days$/,
    );
  });

  test("do not become readable through default privileges on new partitions", async () => {
    const url = await server.createSchema();
    await runSql(url, "CREATE ROLE reader; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader, PUBLIC");
    try {
      await migratePostgres(url);
    } finally {
      await runSql(url, "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM reader, PUBLIC");
    }
    const readable = `SELECT relname FROM pg_class WHERE relname LIKE 'deletions%' AND relkind IN ('r', 'p')
      AND pg_table_is_visible(oid) AND has_table_privilege('reader', oid, 'SELECT')`;
    expect(await runSql(url, readable)).toEqual([{ relname: "deletions" }]);
  });

  test("are partitioned by UTC days in any time zone and date style", async () => {
    const [url, url2] = [await server.createSchema(), await server.createSchema()];
    await migratePostgres(url);
    // The server formats this time zone as IST, but would parse IST as Israel's time.
    await migratePostgres(`${url2}%20-cDateStyle%3DSQL,DMY%20-cTimeZone%3DAsia/Kolkata`);
    expect(await boundsOf(url)).toHaveLength(4);
    expect(await boundsOf(url2)).toEqual(await boundsOf(url));
  });

  test("are dropped row by row on an engine without partitions", async () => {
    const url = await createUndividedStore(server, 3);
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url, onUpkeep: (upkeep) => void reports.push(upkeep) });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await expect(store.delete(2n, deleteCall({ idempotencyKey: "a" }))).resolves.toBe(true);
    await expect(store.delete(2n, deleteCall({ idempotencyKey: "a" }))).resolves.toBe(true);
    await store.close();
    expect({ reports, records: await recordsOf(url) }).toEqual({ reports: [], records: { deletions: 2 } });
  });
});
