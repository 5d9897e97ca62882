import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { checkPostgresStore, migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { configOf, deleteCall, runSql } from "../../support/plants/index.ts";
import { closing, createTempFolder } from "@protoport/testing/process";
import { citusBuild, programsFolder } from "./build.ts";
import { startCitus } from "./citus-cluster.ts";
import { openCitusSession } from "./open-session.ts";

let url: string;
const cluster = shared(() => startCitus());
beforeAll(async () => {
  url = await cluster.createSchema();
  await migratePostgres(url);
  await growPlants();
});
beforeEach(() => growPlants());
const ids = Array.from({ length: 40 }, (_, i) => BigInt(i));
const absent = Array.from({ length: 40 }, (_, i) => BigInt(i + 40));
async function growPlants(): Promise<void> {
  await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[]) ON CONFLICT DO NOTHING`);
}

const openSession = (): ReturnType<typeof openCitusSession> => openCitusSession(url);

async function plantsByWorker(among = ids): Promise<readonly (readonly bigint[])[]> {
  const sql = `SELECT nodeport, array_agg(id) AS ids FROM unnest('{${among.join()}}'::bigint[]) AS id
     JOIN citus_shards ON shardid = get_shard_id_for_distribution_column('plants', id) GROUP BY 1`;
  const rows = await runSql(url, sql);
  const ofPort = new Map(rows.map((row) => [row["nodeport"], row["ids"]]));
  return cluster.workers.map(({ port }) => [ofPort.get(port)].flat().map((id) => BigInt(String(id))));
}

/** Resolves to the process id of the first statement on the worker that waits for standbys. */
async function waiting(notPid = 0): Promise<number> {
  const look = async (): Promise<number> => {
    const sql = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> ${notPid}`;
    const [row] = await runSql(worker(), sql);
    return Number(row?.["pid"] ?? 0);
  };
  await expect.poll(look).not.toBe(0);
  return await look();
}

/** The URL for the worker whose settings are changed. */
const worker = (): string => cluster.workers[1]?.url ?? "";

/** Cancels waits as an operator does. The worker then commits without its standbys. */
const cancelWaits = () =>
  runSql(worker(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");

describe("a worker without its synchronous standby", () => {
  beforeEach(() => cluster.workers[1]?.configure("SET synchronous_standby_names = 'nobody'"));
  afterEach(() => cluster.workers[1]?.configure("RESET synchronous_standby_names"));

  test.each([
    { answer: "deleted", among: ids, isThere: true },
    { answer: "not found", among: absent, isThere: false },
  ])('sends no response "$answer" when its standby wait is cancelled', async ({ among, isThere }) => {
    const [, [id = 0n] = []] = await plantsByWorker(among);
    const store = await openPostgresStore({ url });
    onTestFinished(() => store.close());
    let outcomes: boolean | undefined;
    const telling = store.delete(id, deleteCall()).then((outcome) => (outcomes = outcome));
    const first = await waiting();
    await cancelWaits();
    await expect.poll(async () => outcomes ?? (await waiting(first))).not.toBe(0);
    expect(outcomes).toBeUndefined();
    await runSql(worker(), "ALTER SYSTEM RESET synchronous_standby_names");
    await runSql(worker(), "SELECT pg_reload_conf()");
    await expect(telling).resolves.toBe(isThere);
  });
});

test("a coordinator without its synchronous standby affects neither deletions nor write checks", async () => {
  await cluster.coordinator.configure("SET synchronous_standby_names = 'nobody'");
  onTestFinished(() => cluster.coordinator.configure("RESET synchronous_standby_names"));
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  await expect(store.delete(ids[0] ?? 0n, deleteCall())).resolves.toBe(true);
  await expect(store.delete(absent[0] ?? 0n, deleteCall())).resolves.toBe(false);
  const { session, tables } = await openSession();
  onTestFinished(() => session.close());
  await expect(tables.checkWrite(session)).resolves.toBeUndefined();
});

test("a coordinator without its standby does not delay a worker with one", async () => {
  const [, [here = 0n] = []] = await plantsByWorker(absent);
  await cluster.workers[1]?.configure("SET synchronous_standby_names = 'receiver'");
  onTestFinished(() => cluster.workers[1]?.configure("RESET synchronous_standby_names"));
  const folder = createTempFolder();
  const { port, user } = configOf(worker());
  const from = `host=127.0.0.1 port=${port} user=${user} application_name=receiver`;
  // A synchronous standby only has to write the WAL.
  const program = join(citusBuild() ?? "", programsFolder, "pg_receivewal");
  const receiver = spawn(program, ["--synchronous", "-D", folder.path, "-d", from], { stdio: "ignore" });
  const ended = once(receiver, "exit");
  onTestFinished(async () => {
    receiver.kill();
    await ended;
    folder[Symbol.dispose]();
  });
  await cluster.coordinator.configure("SET synchronous_standby_names = 'nobody'");
  onTestFinished(() => cluster.coordinator.configure("RESET synchronous_standby_names"));
  await using store = closing(await openPostgresStore({ url }));
  await expect(store.delete(here, deleteCall())).resolves.toBe(false);
});

test("a worker with fsync = off refuses deletions, with the reason", async () => {
  const store = await openPostgresStore({ url });
  await cluster.workers[1]?.configure("SET fsync = off");
  await expect.poll(() => store.problem, { timeout: 15_000 }).toMatch(/fsync and encoding of the worker 127\.0\.0\.1/);
  await expect(store.delete(ids[0] ?? 0n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
  await store.close();
  await expect(openPostgresStore({ url })).rejects.toThrow(/of the worker 127\.0\.0\.1/);
  await expect(checkPostgresStore(url)).rejects.toThrow(/of the worker 127\.0\.0\.1/);
  await cluster.workers[1]?.configure("RESET fsync");
  await expect(checkPostgresStore(url)).resolves.toEqual([]);
});

test("workers with a collation warning on every new connection delete as usual", async () => {
  const update = (version: string): Promise<unknown> =>
    Promise.all(workers.map((one) => runSql(one, `UPDATE pg_database SET datcollversion = ${version}`)));
  const workers = cluster.workers.map((node) => node.url);
  const [[first = 0n] = [], [second = 0n] = []] = await plantsByWorker();
  await update("'0'");
  onTestFinished(async () => void (await update("pg_database_collation_actual_version(oid)")));
  await expect(checkPostgresStore(url)).resolves.toEqual([]);
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  expect(store.problem).toBeUndefined();
  await expect(store.delete(first, deleteCall())).resolves.toBe(true);
  await expect(store.delete(second, deleteCall())).resolves.toBe(true);
});
