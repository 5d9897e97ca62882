import { Code } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
// oxfmt-ignore
import { checkPostgresStore, migratePostgres, openPostgresDatabase
} from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { dropOldRecords } from "../../../src/stores/postgres/all-plants/retention.ts";
import { deleteTimeouts, type StoreTables } from "../../../src/stores/postgres/delete/store-tables.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { tablesSql } from "../../../src/stores/postgres/schema/store-schema.ts";
import { closing, collect } from "@protoport/testing/process";
// oxfmt-ignore
import { callersOf, deleteCall, openClient, readPlants, runBatchWith, runSql, withStrictIsolation
} from "../../support/plants/index.ts";
import { addTriggerOn, type Trigger } from "./add-trigger.ts";
import { startCitus } from "./citus-cluster.ts";
import { openCitusSession } from "./open-session.ts";

const cluster = shared(() => startCitus());

async function createStore(plants: readonly bigint[] = [], shards?: number): Promise<string> {
  const url = await cluster.createSchema(shards);
  await migratePostgres(url);
  if (plants.length > 0) await runSql(url, `INSERT INTO plants SELECT unnest('{${plants.join()}}'::bigint[])`);
  return url;
}

/** Creates the tables of a store that Citus has not distributed yet. */
const makeTables = (url: string) => runSql(url, tablesSql);

const addTrigger = (url: string, trigger: Trigger): Promise<void> => addTriggerOn(cluster, url, trigger);

/** Adds deletion records in 2020, one per second, for plants from 1 on. */
async function addOldRecords(url: string, count: number): Promise<void> {
  const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
     SELECT id, '2020-01-01'::timestamptz + id * interval '1 s', '', '', gen_random_uuid()
     FROM unnest(ARRAY(SELECT generate_series(1, ${count})::bigint)) AS id`;
  await runSql(url, sql);
}

/** Resolves once this many statements on a server wait for a row lock. */
async function waitingForLocks(url: string, count: number): Promise<void> {
  const look = (): Promise<unknown> =>
    runSql(url, "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_type = 'client backend'");
  await expect.poll(look).toHaveLength(count);
}

function oneOfEach(tables: StoreTables): readonly bigint[] {
  const ids = Array.from({ length: 200 }, (_, i) => BigInt(i));
  return [...new Map(ids.toReversed().map((id) => [tables.lanes.of(id), id])).values()];
}

describe("on Citus", () => {
  const ids = Array.from({ length: 200 }, (_, i) => BigInt(i));

  test("migrate distributes both tables, with records on their plants' workers", async () => {
    const url = await cluster.createSchema(32);
    await Promise.all(Array.from({ length: 3 }, () => migratePostgres(url)));
    await migratePostgres(url);
    const sql = `SELECT table_name::text, nodeport, count(*)::int AS shards, min(colocation_id) = max(colocation_id) AS together
       FROM citus_shards WHERE table_name IN ('plants'::regclass, 'deletions'::regclass) GROUP BY 1, 2 ORDER BY 1, 2`;
    expect((await runSql(url, sql)).map(({ shards }) => shards)).toEqual([16, 16, 16, 16]);
  });

  test("two concurrent migrations succeed under strict default isolation", async () => {
    const url = await cluster.createSchema();
    await makeTables(url);
    const strict = withStrictIsolation(url);
    const lock = await openClient(url, "BEGIN; SELECT FROM plantstore_schema FOR UPDATE");
    const migrating = Promise.all([migratePostgres(strict), migratePostgres(strict)]);
    await waitingForLocks(cluster.coordinator.url, 2);
    await lock.query("ROLLBACK");
    await lock.end();
    await expect(migrating).resolves.toHaveLength(2);
  });

  test.each([
    { name: "without colocation", column: "plant_id", primaryKey: "plant_id, seq", together: "none" },
    { name: "by another column", column: "seq", primaryKey: "seq", together: "plants" },
  ])("migrate refuses tables distributed $name by an operator", async (spread) => {
    const url = await cluster.createSchema();
    await makeTables(url);
    const key = `DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (${spread.primaryKey})`;
    await runSql(url, `ALTER TABLE deletions ${key}; DROP INDEX deletions_by_key`);
    await runSql(url, "SELECT create_distributed_table('plants', 'id')");
    const how = `'${spread.column}', colocate_with => '${spread.together}'`;
    await runSql(url, `SELECT create_distributed_table('deletions', ${how})`);
    await expect(migratePostgres(url)).rejects.toThrow(
      /"plants" must be distributed by "id", "deletions" by "plant_id" and colocated/,
    );
  });

  test("every command refuses a distributed schema with advice", async () => {
    const refusal = /a distributed schema .* use another schema, or run "SELECT .*"$/;
    const url = await cluster.createSchema();
    await runSql(url, "SELECT citus_schema_distribute(current_schema()::regnamespace)");
    await expect(migratePostgres(url)).rejects.toThrow(refusal);
    const other = await cluster.createSchema();
    await makeTables(other);
    await runSql(other, "SELECT citus_schema_distribute(current_schema()::regnamespace)");
    await expect(migratePostgres(other)).rejects.toThrow(refusal);
    await expect(openPostgresStore({ url: other })).rejects.toThrow(refusal);
    await expect(checkPostgresStore(other)).rejects.toThrow(refusal);
  });

  test("each plant gets the lane of the worker that stores it", async () => {
    const { session, location, tables } = await openCitusSession(await createStore());
    await location.refresh(session);
    // The tables are kept, because no shard was moved.
    expect(location.tables).toBe(tables);
    const asked = [...ids, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n, -(2n ** 32n)];
    const sql = `SELECT id, groupid FROM unnest($1::bigint[]) AS id
       JOIN pg_dist_placement ON shardid = get_shard_id_for_distribution_column('plants', id)`;
    const rows = await session.query(sql, [`{${asked.join()}}`]);
    await session.close();
    expect(rows).toHaveLength(asked.length);
    expect(rows.map(([id]) => String(tables.lanes.of(BigInt(id ?? ""))))).toEqual(rows.map(([, worker]) => worker));
  });

  test("a worker's queue is created by the first deletion on that worker", async () => {
    const url = await createStore(ids);
    const { session, tables } = await openCitusSession(url);
    await session.close();
    const plants = oneOfEach(tables);
    const store = await openPostgresStore({ url });
    const maxWaiting: unknown[] = [];
    for (const id of plants) {
      await expect(store.delete(id, deleteCall())).resolves.toBe(true);
      maxWaiting.push(store.waiting);
    }
    await store.close();
    expect(maxWaiting).toEqual([16_384, 32_768].map((maxForBatch) => ({ forBatch: 0, maxForBatch, forLock: 0 })));
  });

  test("an open store batches by worker once its tables are distributed", async () => {
    const url = await cluster.createSchema();
    await makeTables(url);
    await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
    let batches = 0;
    const onBatch = (): (() => void) => {
      batches++;
      return () => undefined;
    };
    const store = await openPostgresStore({ url, onBatch });
    onTestFinished(() => store.close());
    await expect(store.delete(ids[0] ?? 0n, deleteCall())).resolves.toBe(true);
    await migratePostgres(url);
    const { session, tables } = await openCitusSession(url);
    await session.close();
    const roomOnceAsked = async (): Promise<number | undefined> => {
      for (const id of oneOfEach(tables)) await store.delete(id, deleteCall()).catch(() => undefined);
      return store.waiting?.maxForBatch;
    };
    // Two workers have twice the limit, in addition to the queue before the distribution.
    await expect.poll(roomOnceAsked).toBe(49_152);
    batches = 0;
    const ofOne = ids.filter((id) => tables.lanes.of(id) === tables.lanes.of(ids[7] ?? 0n)).slice(-2);
    await expect(Promise.all(ofOne.map((id) => store.delete(id, deleteCall())))).resolves.toEqual([true, true]);
    expect(batches).toBe(1);
  });

  test("every batch has one worker's plants, even after waiting for locks", async () => {
    const url = await createStore(ids);
    const { session, tables } = await openCitusSession(url);
    await session.close();
    const locking = await openClient(url, "BEGIN; SET lock_timeout = 0");
    for (const id of oneOfEach(tables)) await locking.query(`SELECT FROM plants WHERE id = ${id} FOR UPDATE`);
    const store = await openPostgresStore({ url });
    // If the machine stalls for long, the deletion fails with Unavailable, and is repeated.
    const askUntilTold = (id: bigint): Promise<boolean> => store.delete(id, deleteCall()).catch(() => askUntilTold(id));
    const outcomes = Promise.all(ids.map(askUntilTold));
    await expect.poll(() => store.waiting).toMatchObject({ forBatch: 0, forLock: 2 });
    await locking.query("ROLLBACK");
    await locking.end();
    expect(new Set(await outcomes)).toEqual(new Set([true]));
    await store.close();
    const records = await runSql(url, "SELECT batch, plant_id FROM deletions");
    const rows = records.map(({ batch, plant_id: id }) => ({ batch, worker: tables.lanes.of(BigInt(String(id))) }));
    const workerOfBatch = new Map(rows.map(({ batch, worker }) => [batch, worker]));
    expect(rows.filter(({ batch, worker }) => worker !== workerOfBatch.get(batch))).toEqual([]);
  });

  test("a plant is deleted from a worker that stores a single hash value", async () => {
    // No smaller id has its hash.
    const tenant = 2n ** 31n;
    const url = await cluster.createSchema(1);
    await migratePostgres(url);
    const { session, location } = await openCitusSession(url);
    await runSql(url, `INSERT INTO plants VALUES (${tenant})`);
    await runSql(url, `SELECT isolate_tenant_to_new_shard('plants', ${tenant}, 'CASCADE', 'block_writes')`);
    const place = `shardid = get_shard_id_for_distribution_column('plants', ${tenant})`;
    const [from] = await runSql(url, `SELECT nodeport FROM citus_shards WHERE ${place}`);
    const to = cluster.workers.find(({ port }) => port !== from?.["nodeport"])?.port;
    const sql = `SELECT citus_move_shard_placement(shardid, nodename, nodeport, nodename, ${to}, 'block_writes')
       FROM citus_shards WHERE ${place}`;
    await runSql(url, sql);
    await location.refresh(session);
    await session.close();
    expect(location.tables.lanes.of(tenant)).not.toBe(location.tables.lanes.of(0n));
    await using store = closing(await openPostgresStore({ url }));
    await expect(store.delete(tenant, deleteCall())).resolves.toBe(true);
  });

  test("a store whose list of shards is incomplete is not ready, and reports why", async () => {
    const url = await createStore(ids);
    await using store = closing(await openPostgresStore({ url }));
    const sql = `CREATE TABLE kept AS SELECT pg_dist_placement.* FROM pg_dist_placement JOIN pg_dist_shard USING (shardid)
       WHERE logicalrelid = 'plants'::regclass LIMIT 1;
       DELETE FROM pg_dist_placement WHERE placementid = (SELECT placementid FROM kept)`;
    await runSql(url, sql);
    const words = "a shard of the table plants has no worker: compare pg_dist_shard with pg_dist_placement";
    await expect.poll(() => store.problem, { timeout: 30_000 }).toContain(words);
    await expect(checkPostgresStore(url)).rejects.toThrow(words);
    await runSql(url, "INSERT INTO pg_dist_placement SELECT * FROM kept");
    await expect.poll(() => store.problem).toBeUndefined();
    for (const id of ids) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
  });

  test("an idempotency key applies to each plant separately", async () => {
    const url = await createStore([1n, 2n]);
    await using store = closing(await openPostgresStore({ url }));
    const call = deleteCall({ idempotencyKey: "key" });
    for (const id of [1n, 2n, 1n, 2n]) await expect(store.delete(id, call)).resolves.toBe(true);
    await expect(store.delete(9n, call)).resolves.toBe(false);
  });

  test("a locked plant is deferred, and others in its batch are deleted", async () => {
    const url = await createStore(ids);
    const locking = await openClient(url, "BEGIN; SELECT FROM plants WHERE id = 7 FOR UPDATE");
    const { session, tables } = await openCitusSession(url);
    const here = ids.filter((id) => tables.lanes.of(id) === tables.lanes.of(7n)).slice(0, 5);
    const locked: bigint[] = [];
    const outcomes = await runBatchWith(session, callersOf(...here), { tables, defer: ({ id }) => locked.push(id) });
    expect(outcomes).toEqual(here.map((id) => (id === 7n ? undefined : true)));
    expect(locked).toEqual([7n]);
    await session.close();
    await locking.query("ROLLBACK");
    await locking.end();
  });

  test("the oldest records are dropped first", async () => {
    const url = await createStore(ids);
    const store = await openPostgresStore({ url });
    await Promise.all(ids.map((id) => store.delete(id, deleteCall({ idempotencyKey: `key-${id}` }))));
    await store.close();
    await runSql(url, "UPDATE deletions SET deleted_at = now() - interval '1 day' WHERE plant_id < 150");
    // Plants that were restored, and deleted again.
    const sql = `INSERT INTO deletions (plant_id, subject, request_id, batch)
       SELECT id, '', '', gen_random_uuid() FROM generate_series(0, 9) AS id`;
    await runSql(url, sql);
    const { session, tables } = await openCitusSession(url);
    const drop = () => dropOldRecords(session, tables.schema, 3_600_000, { max: 1_000 });
    await expect(drop()).resolves.toEqual({ count: 150, isMore: false });
    await expect(drop()).resolves.toEqual({ count: 0, isMore: false });
    await session.close();
    await using database = await openPostgresDatabase(url);
    expect((await collect(database.listDeletions())).flat()).toHaveLength(60);
  });

  test.each([
    { name: "in slices", sql: undefined, counts: [1_000, 1] },
    { name: "no further than the last record if a trigger keeps them", sql: "RETURN NULL", counts: [0, 0] },
  ])("records are dropped $name", async ({ sql, counts }) => {
    const url = await createStore();
    await addOldRecords(url, 1_001);
    if (sql !== undefined) await addTrigger(url, { table: "deletions", when: "DELETE", sql });
    const { session, tables } = await openCitusSession(url);
    const first = await dropOldRecords(session, tables.schema, 3_600_000, { max: 1_000 });
    const slice = { max: 1_000, fromUs: first.reachedTimeUs };
    const second = await dropOldRecords(session, tables.schema, 3_600_000, slice);
    await session.close();
    expect(first).toMatchObject({ count: counts[0], isMore: true });
    expect(second).toMatchObject({ count: counts[1], isMore: false });
  });

  test("each of two processes counts only the records that it drops", async () => {
    const url = await createStore();
    const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
       VALUES (1, '2020-01-01', '', '', gen_random_uuid())`;
    await runSql(url, sql);
    const lock = await openClient(url, "BEGIN; SELECT FROM deletions WHERE plant_id = 1 FOR UPDATE");
    const drop = async (): Promise<number> => {
      const { session, tables } = await openCitusSession(url);
      // The store tries again after a lock timeout.
      const dropping = dropOldRecords(session, tables.schema, 3_600_000, { max: 1_000 });
      const dropped = await dropping.catch(() => ({ count: 0 }));
      await session.close();
      return dropped.count;
    };
    const dropping = Promise.all([drop(), drop()]);
    const [row] = await runSql(
      url,
      `SELECT nodeport FROM citus_shards WHERE table_name = 'deletions'::regclass
       AND shardid = get_shard_id_for_distribution_column('deletions', 1)`,
    );
    const worker = cluster.workers.find(({ port }) => port === row?.["nodeport"]);
    await waitingForLocks(worker?.url ?? "", 1);
    await lock.query("ROLLBACK");
    await lock.end();
    expect(new Set(await dropping)).toEqual(new Set([0, 1]));
  });

  describe("a deletion", () => {
    test("is refused for a restored plant when a trigger drops its second record", async () => {
      const url = await createStore(ids);
      const store = await openPostgresStore({ url });
      await Promise.all(ids.map((id) => store.delete(id, deleteCall())));
      await runSql(url, "INSERT INTO plants VALUES (7)");
      await addTrigger(url, { table: "deletions", when: "INSERT", sql: "RETURN NULL", of: 7n });
      await expect(store.delete(7n, deleteCall())).rejects.toMatchObject({ code: Code.FailedPrecondition });
      await store.close();
      expect(await readPlants(url)).toEqual([7n]);
    });

    test("deletes the plant when a trigger changes the record", async () => {
      const url = await createStore(ids);
      const sql = "NEW.subject = upper(NEW.subject); RETURN NEW";
      await addTrigger(url, { table: "deletions", when: "INSERT", sql });
      const store = await openPostgresStore({ url });
      await Promise.all(ids.map((id) => store.delete(id, deleteCall({ subject: "subject" }))));
      await store.close();
      expect(await runSql(url, "SELECT FROM deletions WHERE subject = 'SUBJECT'")).toHaveLength(ids.length);
    });
  });

  describe("a write check of the server", () => {
    const full = "RAISE 'no room' USING ERRCODE = '53100'";

    test.each([
      { name: "passes while the first worker has a full disk", sql: full, on: 0, outcomes: "healthy" },
      { name: "passes while the second worker has a full disk", sql: full, on: 1, outcomes: "healthy" },
      { name: "passes if a trigger refuses its record", sql: "RAISE 'no records'", outcomes: "healthy" },
      { name: "fails if all workers have a full disk", sql: full, outcomes: "error: no room" },
      { name: "fails if the only worker has a full disk", sql: full, shards: 1, outcomes: "error: no room" },
    ])("$name, and deletes nothing", async ({ sql, on, shards, outcomes }) => {
      const url = await createStore(ids, shards);
      await addTrigger(url, { table: "deletions", when: "INSERT", sql, ...(on === undefined ? {} : { on }) });
      const { session, tables } = await openCitusSession(url);
      expect(await tables.checkWrite(session).then(() => "healthy", String)).toBe(outcomes);
      await session.close();
      expect(await readPlants(url)).toEqual(ids);
      expect(await runSql(url, "SELECT FROM deletions")).toEqual([]);
    });

    test("passes while another process's check hangs after its write", async () => {
      const url = await createStore([], 1);
      const sql = "IF pg_try_advisory_xact_lock(1) THEN PERFORM pg_sleep(600); END IF; RETURN NULL";
      await addTrigger(url, { table: "deletions", when: "INSERT", at: "AFTER", sql });
      const { session: stalled, tables } = await openCitusSession(url);
      const { session: other } = await openCitusSession(url, deleteTimeouts);
      const stalling = tables.checkWrite(stalled).then(() => "healthy", String);
      const asleep = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
      const sleepers = () => Promise.all(cluster.workers.map(({ url: on }) => runSql(on, asleep)));
      await expect.poll(async () => (await sleepers()).flat()).toHaveLength(1);
      expect(await tables.checkWrite(other).then(() => "healthy", String)).toBe("healthy");
      await Promise.all([stalled.close(), other.close()]);
      expect(await stalling).not.toBe("healthy");
    });

    test("fails if every worker refuses records", async () => {
      const url = await createStore(ids);
      await runSql(url, "ALTER TABLE deletions RENAME COLUMN subject TO author");
      const { session, tables } = await openCitusSession(url);
      await expect(tables.checkWrite(session)).rejects.toThrow(/column "subject" of relation/);
      await session.close();
    });
  });

  test("a cancelled deletion is in doubt, and a refused one is not", async () => {
    const url = await createStore([7n, 8n]);
    const sql = "IF OLD.id = 8 THEN RAISE 'protected'; END IF; PERFORM pg_sleep(5); RETURN OLD";
    await addTrigger(url, { table: "plants", when: "DELETE", sql });
    const { session, tables } = await openCitusSession(url);
    session.deadlineMs = performance.now() + 1_500;
    const [cancelled, refused] = callersOf(7n, 8n).map((one) => [one]);
    await session.run("SET statement_timeout = '100ms'");
    await runBatchWith(session, cancelled ?? [], { tables }).catch(() => undefined);
    expect(cancelled?.[0]?.doubts).not.toEqual([]);
    session.deadlineMs = performance.now() + 5_000;
    await runBatchWith(session, refused ?? [], { tables });
    expect(refused).toMatchObject([{ outcome: "protected", doubts: [] }]);
    await session.close();
  });
});
