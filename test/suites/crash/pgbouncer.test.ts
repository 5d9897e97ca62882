import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { migratePlants, openPlantDatabase, openPlantStore } from "../../../src/stores/index.ts";
// oxfmt-ignore
import { canKeepStatements, deleteCall, DeleteTally, describePlantDatabase, describePlantStore, factsOfOwnDatabase,
  type Pgbouncer, type PooledDatabase, type PostgresServer, readPlants, runSql, startDeleteLoad, startPgbouncer,
  startPooledDatabase } from "../../support/plants/index.ts";
import { startPlantServer } from "../../support/server/plant-server.ts";
import { closing, Dice, testSeed } from "@protoport/testing/process";

const run = promisify(execFile);
const faults = 10;
const plants = 200_000;
const timeout = 300_000;
/** The database without the pooler, for the test's checks. */
let direct: string;
let postgres: PostgresServer;
let pooler: Pgbouncer;
let database: PooledDatabase;
beforeAll(async () => {
  database = await startPooledDatabase();
  ({ direct, postgres, pooler } = database);
  await migratePlants({ kind: "postgres", url: pooler.url });
}, timeout);
// Some tests kill PgBouncer.
afterEach(() => pooler.start());
afterAll(() => database[Symbol.asyncDispose]());

async function openEmpty() {
  await runSql(direct, "TRUNCATE plants, deletions");
  return await openPlantStore({ kind: "postgres", url: pooler.url });
}

const createPlants = (count: number) =>
  runSql(direct, `TRUNCATE plants, deletions; INSERT INTO plants SELECT generate_series(1, ${count})`);

describe("PgBouncer in transaction mode", () => {
  describePlantStore(
    async (ids) => {
      const store = await openEmpty();
      await runSql(direct, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
      const reopen = () => openPlantStore({ kind: "postgres", url: pooler.url });
      return { store, plants: () => readPlants(direct), reopen, [Symbol.asyncDispose]: () => store.close() };
    },
    { lacks: factsOfOwnDatabase },
  );

  describePlantDatabase(async () => {
    return { store: await openEmpty(), database: await openPlantDatabase({ kind: "postgres", url: pooler.url }) };
  });
});

describe("behind PgBouncer in transaction mode", () => {
  test("processes with more connections than the server allows delete each plant once", { timeout }, async () => {
    const shared = 5_000;
    await createPlants(shared);
    const program = fileURLToPath(new URL("../../support/plants/delete-all.ts", import.meta.url));
    const outputs = await Promise.all(
      [0, 1, 2, 3].map((seed) =>
        run(process.execPath, [program, pooler.url, String(shared), String(seed * 1_000)], { maxBuffer: 2 ** 24 }),
      ),
    );
    const deleted: string[] = outputs.flatMap(({ stdout }) => JSON.parse(stdout));
    expect(deleted).toHaveLength(shared);
    expect(new Set(deleted).size).toBe(shared);
  });

  test("a store whose prepared statements are lost still deletes", { timeout }, async () => {
    const count = 200;
    await createPlants(count);
    const store = await openPlantStore({ kind: "postgres", url: pooler.url });
    for (let id = 1n; id <= count; id++) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
    await store.close();
    const [records] = await runSql(direct, "SELECT count(*), count(DISTINCT plant_id) AS plants FROM deletions");
    expect(records).toEqual({ count: String(count), plants: String(count) });
  });

  test("a store is unhealthy while its pooler is down, then recovers", { timeout }, async () => {
    await using store = closing(await openEmpty());
    await pooler.kill();
    await expect.poll(() => store.problem).toMatch(/:6432\/plantstore: connect /);
    await pooler.start();
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
  });

  // oxfmt-ignore
  const breaks: readonly { name: string; breakIt: () => Promise<void> }[] = [
    { name: "the pooler is killed", breakIt: async () => {
        await pooler.kill();
        await pooler.start();
      } },
    { name: "the database behind it crashes", breakIt: async () => {
        await postgres.stop("immediate");
        await postgres.start();
      } },
  ];

  test.each(breaks)("while $name, every caller gets the true outcome", { timeout }, async ({ breakIt }) => {
    await createPlants(plants);
    await using server = await startPlantServer({ store: await openPlantStore({ kind: "postgres", url: pooler.url }) });
    const tally = new DeleteTally();
    const dice = new Dice(testSeed);
    const load = startDeleteLoad(server.address, tally);
    for (let fault = 0; fault < faults; fault++) {
      await load.acknowledged(1 + dice.roll(300));
      await breakIt();
    }
    await load.acknowledged(1);
    await load.stop();
    const left = new Set((await runSql(direct, "SELECT id FROM plants")).map(({ id }) => BigInt(String(id))));
    expect(tally.deleted.size).toBeGreaterThan(faults);
    expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
    expect([...tally.notFound]).toEqual([]);
    expect([...tally.asked].filter((id) => !left.has(id)).length).toBe(plants - left.size);
    const sql = "SELECT count(*) AS records, count(DISTINCT plant_id) AS plants FROM deletions";
    const [counts] = await runSql(direct, sql);
    expect(counts).toEqual({ records: String(plants - left.size), plants: String(plants - left.size) });
  });
});

// Debian 12 has an older release. Set `PGBOUNCER=/path/of/the/program` to use another one.
if (canKeepStatements())
  test("statements are sent by name through PgBouncer 1.21 or newer", { timeout }, async () => {
    const count = 400;
    await createPlants(count);
    await using keeping = await startPgbouncer(postgres.socketFolder, { keeps: true });
    const open = () => openPlantStore({ kind: "postgres", url: keeping.url });
    const stores = [await open(), await open()];
    const deleting = Array.from({ length: count }, async (_, i) => {
      const id = BigInt(i + 1);
      return (await Promise.all(stores.map((store) => store.delete(id, deleteCall())))).filter(Boolean).length;
    });
    expect(new Set(await Promise.all(deleting))).toEqual(new Set([1]));
    for (const store of stores) await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
    for (const store of stores) await store.close();
    const kept =
      "SELECT count(*) > 0 AS kept FROM pg_prepared_statements WHERE statement LIKE '%DELETE FROM %.plants%'";
    expect(await runSql(keeping.url, kept)).toEqual([{ kept: true }]);
  });
