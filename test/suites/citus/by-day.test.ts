import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { migratePostgres, openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { partitionByDaySql, distributedDays } from "../../../src/stores/citus/by-day.ts";
import { distribute } from "../../../src/stores/citus/distribute.ts";
import { tablesSql } from "../../../src/stores/postgres/schema/tables.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import type { Upkeep } from "../../../src/stores/contract/upkeep.ts";
import { collect } from "../../../packages/testing/src/collect.ts";
import { dropMeanwhile, partitionsOf, recordsOf } from "../../support/plants/days.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { startHangingProxy } from "../../support/plants/postgres-proxy.ts";
import { openClient, runSql } from "../../support/plants/postgres-server.ts";
import { type CitusCluster, startCitus } from "./citus-cluster.ts";
import { openCitusSession } from "./open-session.ts";
import { schemaOf } from "../../support/plants/schema-of.ts";

let cluster: CitusCluster;
beforeAll(async () => {
  cluster = await startCitus();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const dayMs = 24 * 3_600_000;
const keptMs = 90 * dayMs;
const ids = Array.from({ length: 40 }, (_, i) => BigInt(i));

async function addPlants(url: string): Promise<void> {
  await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
}

async function createStore(): Promise<string> {
  const url = await cluster.createSchema();
  await migratePostgres(url);
  await addPlants(url);
  return url;
}

/** Creates a store that is distributed but not partitioned, as if PostgreSQL were too new for that. */
async function createUndividedStore(): Promise<string> {
  const url = await cluster.createSchema();
  await runSql(url, tablesSql(false));
  const { session } = await openCitusSession(url);
  await distribute(session, schemaOf(session));
  await session.close();
  await addPlants(url);
  return url;
}

/** Creates a partition for this many days, which starts in the past, with this many records on its first noon. */
async function addDays(url: string, first: string, days: number, records: number): Promise<string> {
  await runSql(url, `SELECT plantstore_make_day('${first}', ${days})`);
  await addRecords(url, first, records);
  return `deletions_${first.replaceAll("-", "")}`;
}

async function addRecords(url: string, day: string, records: number): Promise<void> {
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, day)
     SELECT unnest(ARRAY(SELECT generate_series(1, ${records})::bigint)), '${day} 12:00+00', '', '', gen_random_uuid(), '${day}'`,
  );
}

async function addKeyed(url: string, day: string, records: number): Promise<void> {
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
     SELECT id, '${day}', '', '', gen_random_uuid(), '${day} ' || id FROM generate_series(1::bigint, ${records}) AS id`,
  );
}

/** Returns the day (UTC) that is this many days from today. */
function dayFromNow(days: number): string {
  return new Date(Date.now() + days * dayMs).toISOString().slice(0, 10);
}

describe("deletion records partitioned by day on Citus", () => {
  test("with a key go to the undated partition, others to their day's", async () => {
    const url = await createStore();
    const store = await openPostgresStore({ url });
    const deleting = ids.map((id) => store.delete(id, deleteCall(id < 10n ? { idempotencyKey: `key-${id}` } : {})));
    expect(new Set(await Promise.all(deleting))).toEqual(new Set([true]));
    const found = await runSql(url, "SELECT count(*) FILTER (WHERE day IS NULL) AS keyed, count(*) FROM deletions");
    expect(found).toEqual([{ keyed: "10", count: "40" }]);
    expect(await runSql(url, "SELECT count(*) FROM deletions_by_row")).toEqual([{ count: "10" }]);
    expect(await runSql(url, "SELECT FROM deletions_other_days")).toEqual([]);
    // A key gets the first outcome, whatever the day, and whether or not the plant exists again.
    await runSql(url, `UPDATE deletions SET deleted_at = '${dayFromNow(-80)}' WHERE day IS NULL`);
    await runSql(url, "INSERT INTO plants VALUES (1)");
    await expect(store.delete(1n, deleteCall({ idempotencyKey: "key-1" }))).resolves.toBe(true);
    await store.close();
    expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
    await using database = await openPostgresDatabase(url);
    expect((await collect(database.listDeletions())).flat()).toHaveLength(40);
  });

  test("are dropped with their partition, or row by row if undated", async () => {
    const url = await createStore();
    const old = await addDays(url, dayFromNow(-100), 8, 40);
    const young = await addDays(url, dayFromNow(-92), 8, 20);
    // A partition that was moved to another schema is kept.
    const moved = await addDays(url, dayFromNow(-130), 1, 2);
    await runSql(url, "CREATE SCHEMA elsewhere");
    await runSql(url, `ALTER TABLE ${moved} SET SCHEMA elsewhere`);
    await addRecords(url, dayFromNow(-110), 1_001);
    await addRecords(url, dayFromNow(-80), 5);
    await addKeyed(url, dayFromNow(-110), 7);
    await addKeyed(url, dayFromNow(-80), 3);
    const { session } = await openCitusSession(url);
    const drop = (): unknown => distributedDays(schemaOf(session)).dropOld(session, keptMs);
    await expect(drop()).resolves.toEqual({ count: 40, isMore: true });
    await expect(drop()).resolves.toEqual({ count: 1_008, isMore: true });
    await expect(drop()).resolves.toEqual({ count: 0, isMore: false });
    await session.close();
    expect(await partitionsOf(url)).not.toContain(old);
    expect(await runSql(url, `SELECT count(*) FROM ${young}`)).toEqual([{ count: "20" }]);
    expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "30" }]);
  });

  test("are refused by a partition that would be dropped too early", async () => {
    const url = await createStore();
    const name = await addDays(url, "2020-01-01", 8, 1);
    await expect(
      runSql(
        url,
        `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, day)
         VALUES (1, '2020-01-09', '', '', gen_random_uuid(), '2020-01-08')`,
      ),
    ).rejects.toThrow(new RegExp(`${name}.*deleted_at_check`));
  });

  test("get each day's partition created once by concurrent processes", async () => {
    const url = await createStore();
    const daysOf = (...days: number[]): string[] =>
      days.map((day) => `deletions_${dayFromNow(day).replaceAll("-", "")}`);
    // migrate has created one for each day.
    expect(await partitionsOf(url)).toEqual([...daysOf(0, 1, 2, 3), "deletions_by_row", "deletions_other_days"]);
    for (const name of daysOf(1, 2, 3)) await runSql(url, `DROP TABLE ${name}`);
    await addRecords(url, dayFromNow(2), 1);
    const make = async (): Promise<void> => {
      const { session } = await openCitusSession(url);
      await distributedDays(schemaOf(session)).make(session, keptMs);
      await session.close();
    };
    await Promise.all([make(), make(), make()]);
    await make();
    expect(await partitionsOf(url)).toEqual([...daysOf(0, 1), "deletions_by_row", "deletions_other_days"]);
    const [made] = await runSql(
      url,
      `SELECT pg_get_expr(relpartbound, oid) AS days FROM pg_class WHERE oid = '${daysOf(1)[0]}'::regclass`,
    );
    const days = [1, 3, 4, 5, 6, 7, 8].map((day) => `'${dayFromNow(day)}'`);
    expect(made).toEqual({ days: `FOR VALUES IN (${days.join(", ")})` });
  });

  test("are not dropped while a worker's transaction reads them; deletions continue", async () => {
    const url = await createStore();
    const old = await addDays(url, "2020-01-01", 8, 5);
    const [schema] = await runSql(url, "SELECT current_schema() AS name");
    const dump = await openClient(
      cluster.workers[0]?.url ?? "",
      `BEGIN; SELECT FROM ${String(schema?.["name"])}.deletions LIMIT 1`,
    );
    const { session } = await openCitusSession(url);
    await expect(distributedDays(schemaOf(session)).dropOld(session, keptMs)).rejects.toMatchObject({ code: "55P03" });
    // The store retries on a connection without the failed transaction.
    await expect(distributedDays(schemaOf(session)).dropOld(session, keptMs)).rejects.toMatchObject({ code: "55P03" });
    await session.close();
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url, onUpkeep: (upkeep) => void reports.push(upkeep) });
    const deleting = ids.map((id) => store.delete(id, deleteCall()));
    expect(new Set(await Promise.all(deleting))).toEqual(new Set([true]));
    await dump.query("COMMIT");
    await dump.end();
    await expect.poll(() => reports).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    await store.close();
    expect(await partitionsOf(url)).not.toContain(old);
  });

  test("do not block deletions for long when a partition change hangs", async () => {
    const url = await createStore();
    await addDays(url, "2020-01-01", 8, 5);
    const store = await openPostgresStore({ url, deletionsKeptMs: 10 * 365 * dayMs });
    await store.delete(ids[0] ?? 0n, deleteCall());
    const [at] = await runSql(url, "SHOW unix_socket_directories");
    await using proxy = await startHangingProxy(String(Object.values(at ?? {})[0]), cluster.coordinator.port);
    const session = new Session(readServerUrl(url.replace("127.0.0.1", proxy.socketFolder)));
    const dropping = distributedDays(schemaOf(session)).dropOld(session, keptMs);
    dropping.catch(() => undefined);
    await proxy.hangs;
    const deleting = ids.slice(1).map((id) => store.delete(id, deleteCall()));
    expect(new Set(await Promise.all(deleting))).toEqual(new Set([true]));
    await session.close();
    await expect(dropping).rejects.toThrow();
    await store.close();
  });

  test("are dropped by row except those that are locked on a worker", async () => {
    const url = await createStore();
    await addKeyed(url, dayFromNow(-100), 40);
    const [shard] = await runSql(
      url,
      `SELECT shard_name AS name, nodeport FROM citus_shards
       WHERE table_name = 'deletions_by_row'::regclass
         AND shardid = get_shard_id_for_distribution_column('deletions_by_row', 1)`,
    );
    const look = await openClient(
      cluster.workers.find(({ port }) => port === shard?.["nodeport"])?.url ?? "",
      `BEGIN; SELECT FROM ${String(shard?.["name"])} WHERE plant_id = 1 FOR UPDATE`,
    );
    const { session } = await openCitusSession(url);
    await expect(distributedDays(schemaOf(session)).dropOld(session, keptMs)).resolves.toEqual({
      count: 39,
      isMore: true,
    });
    await expect(distributedDays(schemaOf(session)).dropOld(session, keptMs)).resolves.toEqual({
      count: 0,
      isMore: false,
    });
    await look.query("COMMIT");
    await look.end();
    await expect(distributedDays(schemaOf(session)).dropOld(session, keptMs)).resolves.toEqual({
      count: 1,
      isMore: true,
    });
    await session.close();
  });

  test("are skipped if another process is dropping their day", async () => {
    const url = await createStore();
    const old = await addDays(url, "2020-01-01", 8, 5);
    const { session } = await openCitusSession(url);
    const dropped = await dropMeanwhile(url, old, () => distributedDays(schemaOf(session)).dropOld(session, keptMs));
    expect(dropped).toEqual({ count: 0, isMore: true });
    await session.close();
  });

  test("require only row privileges, without which no user manages partitions", async () => {
    const url = await createStore();
    const [schema] = await runSql(url, "SELECT current_schema() AS name");
    const name = String(schema?.["name"]);
    await addDays(url, "2020-01-01", 1, 5);
    onTestFinished(() => runSql(url, "DROP OWNED BY gardener, guest; DROP ROLE gardener, guest").then(() => undefined));
    await runSql(url, "CREATE ROLE gardener LOGIN");
    await runSql(url, "CREATE ROLE guest LOGIN");
    await runSql(url, `GRANT USAGE ON SCHEMA ${name} TO gardener, guest`);
    await runSql(url, "GRANT SELECT, INSERT, UPDATE, DELETE ON plants, deletions TO gardener");
    await runSql(url, "GRANT SELECT ON plantstore_schema TO gardener");
    const as = (role: string): string => url.replace("user=tester", `user=${role}`);
    for (const call of ["make_days('90 days')", "drop_day('90 days')"])
      await expect(runSql(as("guest"), `SELECT plantstore_${call}`)).rejects.toThrow("permission denied for table");
    await expect(runSql(as("gardener"), "DROP TABLE deletions_20200101")).rejects.toThrow(/must be owner/);
    const reports: Upkeep[] = [];
    const store = await openPostgresStore({ url: as("gardener"), onUpkeep: (upkeep) => void reports.push(upkeep) });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await expect.poll(() => reports).toMatchObject([{ kind: "records-dropped", count: 5 }]);
    await store.close();
  });
});

describe("partitioning records by day on Citus", () => {
  test("allows servers to delete, also with keys, and reuses no number", async () => {
    const url = await createUndividedStore();
    const store = await openPostgresStore({ url });
    const { session, location } = await openCitusSession(url);
    expect(location.placement.days).toBeUndefined();
    await expect(store.delete(0n, deleteCall({ idempotencyKey: "key" }))).resolves.toBe(true);
    const migrated = new AbortController();
    const migrating = migratePostgres(url).finally(() => migrated.abort());
    for (let i = 0; !migrated.signal.aborted; i++) {
      const id = BigInt(1_000 + i);
      await runSql(url, `INSERT INTO plants VALUES (${id})`);
      await expect(store.delete(id, deleteCall(i % 2 === 0 ? { idempotencyKey: `key-${id}` } : {}))).resolves.toBe(
        true,
      );
    }
    await migrating;
    await store.close();
    await location.refresh(session);
    expect(location.placement.days).toBeDefined();
    await session.close();
    const later = await openPostgresStore({ url });
    await runSql(url, "INSERT INTO plants VALUES (0)");
    await expect(later.delete(0n, deleteCall({ idempotencyKey: "key" }))).resolves.toBe(true);
    await expect(later.delete(1n, deleteCall())).resolves.toBe(true);
    await later.close();
    const [counts] = await runSql(
      url,
      `SELECT count(*) = count(DISTINCT plant_id) AS once, count(*) = count(DISTINCT seq) AS numbered,
         count(*) FILTER (WHERE day IS NOT NULL) > 0 AS divided FROM deletions`,
    );
    expect(counts).toEqual({ once: true, numbered: true, divided: true });
    expect(await runSql(url, "SELECT count(*) FROM plants WHERE id = 0 OR id >= 1000")).toEqual([{ count: "1" }]);
  });

  test.each([1, 2, 3])("continues after an interruption after step %i, while servers delete", async (steps) => {
    const url = await createUndividedStore();
    for (const sql of partitionByDaySql.slice(0, steps)) await runSql(url, sql);
    const store = await openPostgresStore({ url });
    const deleting = ids.map((id) => store.delete(id, deleteCall(id < 10n ? { idempotencyKey: `key-${id}` } : {})));
    expect(new Set(await Promise.all(deleting))).toEqual(new Set([true]));
    await migratePostgres(url);
    await runSql(url, "INSERT INTO plants VALUES (1), (100)");
    await expect(store.delete(1n, deleteCall({ idempotencyKey: "key-1" }))).resolves.toBe(true);
    await expect(store.delete(100n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(Object.values(await recordsOf(url)).length).toBeGreaterThan(0);
    expect(await runSql(url, "SELECT count(*), count(day) AS divided FROM deletions")).toEqual([
      { count: "41", divided: "1" },
    ]);
  });

  test("keeps privileges, and grants no others", async () => {
    const url = await createUndividedStore();
    await runSql(url, "GRANT SELECT ON deletions TO PUBLIC");
    await migratePostgres(url);
    const granted = await runSql(
      url,
      "SELECT relname FROM pg_class WHERE relname LIKE 'deletions%' AND relkind IN ('r', 'p') AND relacl::text LIKE '%,=r/%' AND relnamespace = current_schema()::regnamespace",
    );
    expect(granted).toEqual([{ relname: "deletions" }]);
  });

  test("names objects that would refer to one partition only, even on shards", async () => {
    const url = await createUndividedStore();
    await runSql(url, "CREATE VIEW audit AS SELECT plant_id FROM deletions");
    await expect(migratePostgres(url)).rejects.toThrow(/drop the view or rule audit, and create it again/);
    await runSql(url, "DROP VIEW audit");
    const [shard] = await runSql(
      url,
      "SELECT shard_name AS name, nodeport FROM citus_shards WHERE table_name = 'deletions'::regclass LIMIT 1",
    );
    const worker = cluster.workers.find(({ port }) => port === shard?.["nodeport"]);
    await runSql(
      worker?.url ?? "",
      `SET citus.enable_ddl_propagation = off; SET citus.enable_manual_changes_to_shards = on;
       CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
       CREATE TRIGGER told BEFORE INSERT ON ${String(shard?.["name"])} FOR EACH ROW EXECUTE FUNCTION told()`,
    );
    await expect(migratePostgres(url)).rejects.toThrow(/drop the trigger told, and create it again/);
  });
});
