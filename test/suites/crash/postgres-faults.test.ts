import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePlants, openPlantDatabase, openPlantStore } from "../../../src/stores/index.ts";
// oxfmt-ignore
import { type Cut, deleteCall, DeleteTally, openClient, type PostgresServer, runSql, startCuttingProxy, startDeleteLoad,
  startPostgres, startStandby } from "../../support/plants/index.ts";
import { startPlantServer } from "../../support/server/plant-server.ts";
import { createTempFolder, Dice, testSeed } from "@protoport/testing/process";

/** The number of cut connections and of crashes. The nightly run uses 30. */
const faults = Number(process.env["CRASHES"] ?? 8);
const plants = 500_000;
const timeout = 300_000;
const socketName = ".s.PGSQL.5432";
/** A constant load's calls per second. */
const ticksPerS = 20;

describe("a server on PostgreSQL", () => {
  let postgres: PostgresServer;
  let url: string;
  beforeAll(async () => void (postgres = await startPostgres()), timeout);
  afterAll(() => postgres[Symbol.asyncDispose]());

  async function createPlants(): Promise<void> {
    url = await postgres.createSchema();
    await migratePlants({ kind: "postgres", url });
    await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${plants})`);
  }

  test("returns the true outcome to every caller while its connections are cut", { timeout }, async () => {
    await createPlants();
    await using proxy = await startCuttingProxy(postgres.socketFolder);
    const proxied = url.replace(postgres.socketFolder, proxy.socketFolder);
    await using server = await startPlantServer({ store: await openPlantStore({ kind: "postgres", url: proxied }) });
    const tally = new DeleteTally();
    const load = startDeleteLoad(server.address, tally);
    const dice = new Dice(testSeed);
    const cuts: readonly Cut[] = ["before-reply", "after-send", "before-reply", "before-send"];
    for (let fault = 0; fault < faults; fault++) {
      await proxy.cutNext(cuts[fault % cuts.length] ?? "before-reply");
      await load.acknowledged(1 + dice.roll(100));
    }
    await load.stop();
    await expectTruth(tally);
    // Retries have succeeded. Deletions may be refused before they are sent on a busy machine.
    const overloaded = `error ${Code.ResourceExhausted}`;
    const refused = tally.failures.get(overloaded) ?? 0;
    expect([...tally.failures.keys()].filter((failure) => failure !== overloaded)).toEqual([]);
    expect(tally.deleted.size).toBe(tally.asked.size - refused);
  });

  test("returns the true outcome to every caller while its database crashes repeatedly", { timeout }, async () => {
    await createPlants();
    await using server = await startPlantServer({ store: await openPlantStore({ kind: "postgres", url }) });
    const tally = new DeleteTally();
    const load = startDeleteLoad(server.address, tally);
    const dice = new Dice(testSeed);
    for (let fault = 0; fault < faults; fault++) {
      await load.acknowledged(1 + dice.roll(500));
      await postgres.stop("immediate");
      await postgres.start();
    }
    await load.acknowledged(1);
    await load.stop();
    await expectTruth(tally);
  });

  // A forgotten transaction holds a lock, and callers keep deleting its plant.
  test("deletes all other plants while another transaction locks one for 40 seconds", { timeout }, async () => {
    await createPlants();
    const store = await openPlantStore({ kind: "postgres", url });
    const other = await openClient(url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
    const others: Promise<unknown>[] = [];
    const locked: Promise<unknown>[] = [];
    const ask = (id: bigint): Promise<unknown> => store.delete(id, deleteCall()).catch(({ code }) => code);
    for (let tick = 0; tick < 40 * ticksPerS; tick++) {
      if (tick % ticksPerS === 0) locked.push(ask(1n));
      for (let i = 0; i < 200 / ticksPerS; i++) others.push(ask(BigInt(others.length + 2)));
      await sleep(1_000 / ticksPerS);
    }
    // All deletions end while the lock is held.
    expect(new Set(await Promise.all(others))).toEqual(new Set([true]));
    expect(new Set(await Promise.all(locked))).toEqual(new Set([Code.Unavailable]));
    expect(store.problem).toBeUndefined();
    await other.end();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    const [counts] = await runSql(url, "SELECT count(*) AS records FROM deletions");
    expect(counts).toEqual({ records: String(others.length + 1) });
  });

  test("loses no acknowledged deletion when a synchronous standby takes over", { timeout }, async () => {
    await createPlants();
    await using standby = await startStandby(postgres, "standby");
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await runSql(url, "SELECT pg_reload_conf()");
    const standbyState = "SELECT sync_state FROM pg_stat_replication";
    await expect.poll(() => runSql(url, standbyState)).toEqual([{ sync_state: "sync" }]);
    const standbyUrl = url.replace(postgres.socketFolder, standby.socketFolder);
    await using replica = await openPlantDatabase({ kind: "postgres", url: standbyUrl });
    for await (const ids of replica.exportPlants()) {
      expect(ids).toHaveLength(10_000);
      break;
    }
    // The link stands for the address of a service, which leads to the primary.
    using service = createTempFolder();
    const leadTo = ({ socketFolder }: { readonly socketFolder: string }): void => {
      rmSync(service.file(socketName), { force: true });
      symlinkSync(join(socketFolder, socketName), service.file(socketName));
    };
    leadTo(postgres);
    const serviceUrl = url.replace(postgres.socketFolder, service.path);
    await using server = await startPlantServer({ store: await openPlantStore({ kind: "postgres", url: serviceUrl }) });
    const tally = new DeleteTally();
    const load = startDeleteLoad(server.address, tally);
    await load.acknowledged(500);
    await postgres.stop("immediate");
    await standby.promote();
    leadTo(standby);
    await load.acknowledged(500);
    await load.stop();
    url = standbyUrl;
    await expectTruth(tally);
    // The failover was over before any timeout.
    expect([...tally.failures]).toEqual([]);
  });

  async function expectTruth(tally: DeleteTally): Promise<void> {
    const left = new Set((await runSql(url, "SELECT id FROM plants")).map(({ id }) => BigInt(String(id))));
    const gone = Array.from({ length: plants }, (_, i) => BigInt(i + 1)).filter((id) => !left.has(id));
    expect(tally.deleted.size).toBeGreaterThan(faults);
    expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
    expect([...tally.notFound]).toEqual([]);
    expect(gone.filter((id) => !tally.asked.has(id))).toEqual([]);
    // Each plant was deleted once, by the caller in its record.
    const [counts] = await runSql(url, "SELECT count(*) AS records, count(DISTINCT plant_id) AS plants FROM deletions");
    expect(counts).toEqual({ records: String(gone.length), plants: String(gone.length) });
  }
});
