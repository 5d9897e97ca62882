import { beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { importPlants, openPlantDatabase } from "../../../src/stores/index.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { deleteCall, runSql } from "../../support/plants/index.ts";
import { startCitus } from "./citus-cluster.ts";

// A coordinator that was frozen or cut off is replaced. When it returns, it rolls back its successor's prepared
// transactions, because it does not know their commits. The successor then commits with a warning only.

const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
let url: string;
const cluster = shared(() => startCitus());
beforeAll(async () => {
  url = await cluster.createSchema();
  await migratePostgres(url);
});
beforeEach(async () => {
  await runSql(url, "DELETE FROM plants");
  // Citus then runs deletions as two-phase commits, as after a failover.
  await cluster.delegate(false);
});

/** Changes the coordinator's configuration. Without standbys, the coordinator stops waiting for them. */
async function configure(setting: string): Promise<void> {
  await runSql(cluster.coordinator.url, `ALTER SYSTEM ${setting}`);
  await runSql(cluster.coordinator.url, "SELECT pg_reload_conf()");
}

/** Runs a commit that waits for the coordinator's standby, until its prepared transactions are rolled back. */
async function whileReplacedCoordinatorReturns<Result>(run: () => Promise<Result>): Promise<Result> {
  await configure("SET synchronous_standby_names = 'nobody'");
  onTestFinished(() => configure("RESET synchronous_standby_names"));
  const running = run();
  const waits = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'plantstore'";
  await expect.poll(() => runSql(url, waits)).not.toEqual([]);
  for (const worker of cluster.workers) {
    for (const { gid } of await runSql(worker.url, "SELECT gid FROM pg_prepared_xacts"))
      await runSql(worker.url, `ROLLBACK PREPARED '${String(gid)}'`);
  }
  await configure("RESET synchronous_standby_names");
  return await running;
}

async function* textOf(lines: readonly bigint[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(lines.join("\n"));
}

const plants = async () => (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => Number(id));

test("an import that a replaced coordinator rolls back reports an error", async () => {
  await using database = await openPlantDatabase({ kind: "postgres", url });
  const imported = whileReplacedCoordinatorReturns(() => importPlants(database, textOf(ids)).then(String, String));
  expect(await imported).toMatch(/a worker did not confirm its part of a commit/);
  expect(await plants()).toEqual([]);
});

test("deletions that a replaced coordinator rolls back are run again", async () => {
  await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const deleteAll = () => Promise.all(ids.map((id) => store.delete(id, deleteCall())));
  expect(new Set(await whileReplacedCoordinatorReturns(deleteAll))).toEqual(new Set([true]));
  expect(await plants()).toEqual([]);
  expect(await runSql(url, "SELECT FROM deletions")).toHaveLength(ids.length);
});
