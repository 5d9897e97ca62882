import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPlantDatabase, openPlantStore } from "../../../src/stores/index.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { watchIntervalMs } from "../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { cancelWaitsForStandby, deleteCall, DeleteTally, describePlantDatabase, describePlantStore, factsOfOwnDatabase,
  leaveOnConnections, leftOnConnections, type Pgbouncer, type PooledDatabase, type PostgresServer, readPlants, runSql,
  startDeleteLoad, startPgbouncer, startPooledDatabase, withoutStandby } from "../../support/plants/index.ts";
import { startPlantServer } from "../../support/server/plant-server.ts";

// Transaction pooling reuses a server connection for other clients, with all settings that `SET` has changed.

const timeout = 300_000;
const plants = 200_000;
const crashes = 3;
/** The database without the pooler, for the test's checks. */
let direct: string;
let postgres: PostgresServer;
let pooler: Pgbouncer;
let database: PooledDatabase;
beforeAll(async () => {
  database = await startPooledDatabase({ keeps: true });
  ({ direct, postgres, pooler } = database);
  await migratePostgres(direct);
  await runSql(direct, "CREATE SCHEMA neighbor; CREATE ROLE neighbor; GRANT USAGE ON SCHEMA neighbor TO neighbor");
  await migratePostgres(`${direct}&options=-csearch_path%3Dneighbor`);
  // This role sees no plant, unlike the owner.
  const sql = `CREATE ROLE gardener; GRANT ALL ON plants, deletions, plantstore_schema TO gardener;
     ALTER TABLE plants ENABLE ROW LEVEL SECURITY`;
  await runSql(direct, sql);
}, timeout);
afterEach(async () => {
  await postgres.start();
  // Restarts PgBouncer, so that connections to the server are new.
  await pooler.kill();
  await pooler.start();
});
afterAll(() => database[Symbol.asyncDispose]());
const open = () => openPlantStore({ kind: "postgres", url: pooler.url });

async function createPlants(count: number): Promise<void> {
  const fill = (schema: string): string =>
    `TRUNCATE ${schema}.plants, ${schema}.deletions; INSERT INTO ${schema}.plants SELECT generate_series(1, ${count})`;
  await runSql(direct, `${fill("public")}; ${fill("neighbor")}`);
}

async function countPlants(schema: string): Promise<number> {
  const [row] = await runSql(direct, `SELECT count(*)::integer AS count FROM ${schema}.plants`);
  return Number(row?.["count"]);
}

const tablesSql = (schema: string): string =>
  `SELECT relname, relkind FROM pg_class WHERE relnamespace = '${schema}'::regnamespace ORDER BY 1`;

const all = leftOnConnections.map(({ sql }) => sql).join("; ");
const allButRefusals = leftOnConnections.flatMap(({ sql, refuses }) => (refuses ? [] : [sql])).join("; ");

describe.each([
  { name: "all settings that affect statements", sql: allButRefusals },
  { name: "all settings", sql: all },
])("PgBouncer with $name changed by another client", ({ sql }) => {
  const openLeftBehind = async () => {
    await createPlants(0);
    const store = await open();
    await leaveOnConnections(pooler.url, sql);
    return store;
  };

  describePlantStore(
    async (ids) => {
      const store = await openLeftBehind();
      await runSql(direct, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
      return { store, plants: () => readPlants(direct), reopen: open, [Symbol.asyncDispose]: () => store.close() };
    },
    { lacks: factsOfOwnDatabase },
  );

  describePlantDatabase(async () => ({
    store: await openLeftBehind(),
    database: await openPlantDatabase({ kind: "postgres", url: pooler.url }),
  }));

  test("a store's health checks pass", { timeout }, async () => {
    const store = await openLeftBehind();
    const problems = new Set<string | undefined>();
    // Waits for two health checks. Both write, because no plant is deleted in the meantime.
    for (let check = 0; check < 2; check++) {
      await sleep(watchIntervalMs);
      problems.add(store.problem);
      await leaveOnConnections(pooler.url, sql);
    }
    await store.close();
    expect(problems).toEqual(new Set([undefined]));
  });
});

test.each(leftOnConnections)("a store stays healthy with $name left by another client", { timeout }, async (row) => {
  const { sql } = row;
  const count = 200;
  await createPlants(count);
  await leaveOnConnections(pooler.url, sql);
  const store = await open();
  const problems = new Set<string | undefined>();
  for (let id = 1n; id <= count; id++) {
    if (id % 50n === 0n) await leaveOnConnections(pooler.url, sql);
    await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    problems.add(store.problem);
  }
  await store.close();
  expect([await countPlants("public"), await countPlants("neighbor")]).toEqual([0, count]);
  expect(problems).toEqual(new Set([undefined]));
});

test(
  "acknowledged deletions survive a SIGKILL although another client disables synchronous_commit",
  { timeout },
  async () => {
    await createPlants(plants);
    await using server = await startPlantServer({ store: await open() });
    const tally = new DeleteTally();
    for (let crash = 0; crash < crashes; crash++) {
      const load = startDeleteLoad(server.address, tally);
      await load.acknowledged(1);
      await leaveOnConnections(pooler.url, "SET synchronous_commit = off");
      await load.acknowledged(500);
      await postgres.stop("kill");
      await postgres.start();
      await load.acknowledged(1);
      await load.stop();
    }
    const left = new Set((await runSql(direct, "SELECT id FROM plants")).map(({ id }) => BigInt(String(id))));
    expect(tally.deleted.size).toBeGreaterThan(crashes * 500);
    expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
    expect([...tally.notFound]).toEqual([]);
  },
);

const unsafe = leftOnConnections.filter(({ sql }) => /synchronous_commit|client_min_messages/.test(sql));
test.each(unsafe)("deletions wait for their standby despite $name left by another client", { timeout }, async (row) => {
  const { sql } = row;
  await createPlants(1);
  await using store = closing(await open());
  await leaveOnConnections(pooler.url, sql);
  await withoutStandby(direct, async () => {
    const refused = expect(store.delete(1n, deleteCall())).rejects.toThrow("the outcome of the deletion is unknown");
    await expect.poll(() => cancelWaitsForStandby(direct)).not.toEqual([]);
    await refused;
  });
});

test("migrate creates the store in the role's schema despite another client's settings", { timeout }, async () => {
  await runSql(direct, "CREATE SCHEMA fresh; ALTER ROLE tester IN DATABASE plantstore SET search_path = fresh");
  try {
    // Restarts PgBouncer, so that server connections start with the setting.
    await pooler.kill();
    await pooler.start();
    await leaveOnConnections(pooler.url, all);
    await expect(migratePostgres(pooler.url)).resolves.toMatchObject({ from: 0 });
    const store = await open();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
    await store.close();
    expect(await runSql(direct, tablesSql("fresh"))).toEqual(await runSql(direct, tablesSql("neighbor")));
  } finally {
    await runSql(direct, "ALTER ROLE tester IN DATABASE plantstore RESET search_path");
  }
});

test("opening a store reports the setting that PgBouncer refuses", async () => {
  const url = `${pooler.url}&options=-csearch_path%3Dneighbor`;
  await expect(openPlantStore({ kind: "postgres", url })).rejects.toThrow(
    /^cannot use \S+: the options in the database URL set search_path, but the server did not get this setting/,
  );
});

test("opening a store reports the setting that PgBouncer drops", async () => {
  await using dropping = await startPgbouncer(postgres.socketFolder, { dropsOptions: true });
  const url = `${dropping.url}&options=-csearch_path%3Dneighbor`;
  await expect(openPlantStore({ kind: "postgres", url })).rejects.toThrow(
    /^cannot use \S+: the options in the database URL set search_path, but the server did not get this setting/,
  );
  // PgBouncer also drops the session's own options, which are not required.
  await createPlants(1);
  await using store = closing(await openPlantStore({ kind: "postgres", url: dropping.url }));
  await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
});
