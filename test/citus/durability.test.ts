import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { PendingDelete } from "../../src/plants/delete-queue.ts";
import { attemptBatch, findRefused } from "../../src/plants/postgres/attempt-batch.ts";
import { checkWrite } from "../../src/plants/postgres/check-write.ts";
import { deletePlants, findDeleted, toDeleteBatch } from "../../src/plants/postgres/delete-batch.ts";
import { checkPostgresDatabase, migratePostgres } from "../../src/plants/postgres/plant-database.ts";
import { readServerUrl } from "../../src/plants/postgres/server-url.ts";
import { Session } from "../../src/plants/postgres/session.ts";
import { openPostgresStore } from "../../src/plants/postgres/store.ts";
import { deleteCall } from "../support/plants/delete-call.ts";
import { runSql } from "../support/plants/postgres-server.ts";
import { type CitusCluster, startCitus } from "./citus-cluster.ts";

let cluster: CitusCluster;
let url: string;
beforeAll(async () => {
  cluster = await startCitus();
  url = await cluster.createSchema();
  await migratePostgres(url);
  await growPlants();
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, subject, request_id, batch) SELECT id, '', '', '${token}' FROM plants`,
  );
});
beforeEach(() => growPlants());
afterAll(() => cluster?.[Symbol.asyncDispose]());

const ids = Array.from({ length: 40 }, (_, i) => BigInt(i));
const absent = Array.from({ length: 40 }, (_, i) => BigInt(i + 40));
const token = "00000000-0000-4000-8000-000000000000";

async function growPlants(): Promise<void> {
  await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[]) ON CONFLICT DO NOTHING`);
}

async function openSession(): Promise<Session> {
  const session = new Session(readServerUrl(url));
  await session.shards.learn(session);
  return session;
}

/** The plants of each worker, in the order of the workers of the cluster. */
async function plantsByWorker(among = ids): Promise<readonly (readonly bigint[])[]> {
  const rows = await runSql(
    url,
    `SELECT nodeport, array_agg(id) AS ids FROM unnest('{${among.join()}}'::bigint[]) AS id
     JOIN citus_shards ON shardid = get_shard_id_for_distribution_column('plants', id) GROUP BY 1`,
  );
  const ofPort = new Map(rows.map((row) => [row["nodeport"], row["ids"]]));
  return cluster.workers.map(({ port }) => [ofPort.get(port)].flat().map((id) => BigInt(String(id))));
}

function pendingDeletes(of: readonly bigint[]): PendingDelete[] {
  return of.map((id) => ({ id, call: deleteCall(), resolve: () => undefined, reject: () => undefined }));
}

/** Resolves once a statement on a worker waits for standbys, to what it is. */
async function waiting(notPid = 0): Promise<number> {
  const look = async (): Promise<number> => {
    const [row] = await runSql(
      worker(),
      `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> ${notPid}`,
    );
    return Number(row?.["pid"] ?? 0);
  };
  await expect.poll(look).not.toBe(0);
  return await look();
}

/** Cancels every wait of a worker for its standbys until something has ended. */
async function whileCancelling<End>(ending: Promise<End>): Promise<End> {
  let isOver = false;
  void ending.finally(() => (isOver = true));
  await expect
    .poll(async () => {
      await cancelWaits();
      return isOver;
    })
    .toBe(true);
  return await ending;
}

/** The URL of the worker whose settings are changed. */
function worker(): string {
  return cluster.workers[1]?.url ?? "";
}

/** What an operator does: the worker then commits without its standbys. */
async function cancelWaits(): Promise<void> {
  await runSql(worker(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
}

describe("a worker whose synchronous standby is gone", () => {
  beforeEach(async () => {
    await cluster.workers[1]?.configure("SET synchronous_standby_names = 'nobody'");
  });
  afterEach(async () => {
    await cluster.workers[1]?.configure("RESET synchronous_standby_names");
  });

  test.each([
    { answer: "deleted", among: ids, isThere: true },
    { answer: "not found", among: absent, isThere: false },
  ])("is no reason to say $answer when the wait for it is cancelled", async ({ among, isThere }) => {
    const [, [id = 0n] = []] = await plantsByWorker(among);
    const store = await openPostgresStore({ url });
    onTestFinished(() => store.close());
    let told: boolean | undefined;
    const telling = store.delete(id, deleteCall()).then((outcome) => (told = outcome));
    const first = await waiting();
    await cancelWaits();
    await expect.poll(async () => told ?? (await waiting(first))).not.toBe(0);
    expect(told).toBeUndefined();
    await runSql(worker(), "ALTER SYSTEM RESET synchronous_standby_names");
    await runSql(worker(), "SELECT pg_reload_conf()");
    await expect(telling).resolves.toBe(isThere);
  });

  test("is not taken to have what a batch for the wrong worker has deleted on it", async () => {
    const [[one] = [], [, ...others] = []] = await plantsByWorker();
    const session = await openSession();
    const batch = `'{${others.slice(0, 2).join()}}', '{a,a}', '{r,r}', '${token}', NULL, false`;
    const told = session.query(`SELECT deleted FROM plantstore_delete(${one}, ${batch})`).then(String, String);
    expect(await whileCancelling(told)).toMatch(/a worker warned/);
    await session.close();
  });

  describe("is not taken to have what others have deleted on it", () => {
    type Plants = () => Promise<readonly bigint[]>;
    const absentHere: Plants = async () => (await plantsByWorker(absent))[1] ?? [];
    const absentOfBoth: Plants = async () => {
      const [[elsewhere = 0n] = [], [here = 0n] = []] = await plantsByWorker(absent);
      return [elsewhere, here];
    };

    test.each([
      { name: "by a batch for another worker", plants: absentOfBoth, skipsLocked: false },
      { name: "by one that waits for no lock", plants: absentOfBoth, skipsLocked: true },
      {
        name: "by a plant that Citus hands to no worker",
        plants: async () => (await absentHere()).slice(0, 1),
        skipsLocked: false,
        isHandedOver: false,
      },
      {
        name: "by a batch that Citus hands to no worker, and that waits for no lock",
        plants: absentHere,
        skipsLocked: true,
        isHandedOver: false,
      },
      {
        name: "by a batch for two workers that Citus hands to none",
        plants: absentOfBoth,
        skipsLocked: false,
        isHandedOver: false,
      },
      {
        name: "by a batch for two workers that Citus hands to none, and that waits for no lock",
        plants: absentOfBoth,
        skipsLocked: true,
        isHandedOver: false,
      },
    ])("$name", async ({ plants, skipsLocked, isHandedOver = true }) => {
      const session = await openSession();
      const pending = pendingDeletes(await plants());
      await cluster.handOver(isHandedOver);
      onTestFinished(() => cluster.handOver(true));
      const mode = { mayBeDone: false, skipsLocked };
      const attempt = attemptBatch(session, toDeleteBatch(token, pending), pending, mode);
      const fault = { message: expect.stringMatching(/a worker warned/) };
      expect(await whileCancelling(attempt)).toMatchObject({ kind: "failed", fault });
      await session.close();
    });

    test.each([
      { name: "", isHandedOver: true },
      { name: " that Citus hands to no worker", isHandedOver: false },
    ])("by a look$name for what is refused", async ({ isHandedOver }) => {
      const session = await openSession();
      await cluster.handOver(isHandedOver);
      onTestFinished(() => cluster.handOver(true));
      const batch = toDeleteBatch(token, pendingDeletes((await absentHere()).slice(0, 1)));
      expect(await whileCancelling(findRefused(session, batch).then(String, String))).toMatch(/a worker warned/);
      await session.close();
    });
  });

  describe("keeps no connection of what is given up:", () => {
    const timeouts = { lockTimeoutMs: 100, statementTimeoutMs: 5_000, answerTimeoutMs: 3_000 };
    const deletionOf =
      (count: number) =>
      async (session: Session): Promise<unknown> => {
        const [, here = []] = await plantsByWorker(absent);
        return await deletePlants(session, toDeleteBatch(token, pendingDeletes(here.slice(0, count))));
      };

    test.each([
      { name: "a check of the server", run: checkWrite, isHandedOver: true },
      { name: "a deletion that Citus hands to no worker", run: deletionOf(1), isHandedOver: false },
      { name: "a two-phase deletion that Citus hands to no worker", run: deletionOf(10), isHandedOver: false },
    ])("$name", async ({ run, isHandedOver }) => {
      const session = new Session(readServerUrl(url), timeouts);
      await session.shards.learn(session);
      await cluster.handOver(isHandedOver);
      onTestFinished(() => cluster.handOver(true));
      await run(session).catch(() => undefined);
      const look = async (): Promise<unknown> => {
        session.discard();
        await session.connect();
        const running = "application_name = 'plantstore' AND state = 'active'";
        return await runSql(url, `SELECT FROM pg_stat_activity WHERE ${running}`);
      };
      await expect.poll(look).toEqual([]);
      await session.close();
    });
  });

  test("is not taken to have the record of a deletion that is looked up", async () => {
    const [, here = []] = await plantsByWorker();
    const session = await openSession();
    const found = findDeleted(session, toDeleteBatch(token, pendingDeletes(here))).then(String, String);
    expect(await whileCancelling(found)).toMatch(/a worker warned/);
    await session.close();
  });
});

test.each(["fsync", "synchronous_commit"])("a worker with %s = off serves nobody, and says so", async (setting) => {
  const [, [id = 0n] = []] = await plantsByWorker();
  const store = await openPostgresStore({ url });
  await cluster.workers[1]?.configure(`SET ${setting} = off`);
  await expect(store.delete(id, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
  expect(store.problem).toMatch(/so commits would not be durable/);
  await store.close();
  await expect(openPostgresStore({ url })).rejects.toThrow(/on the worker 127\.0\.0\.1/);
  await expect(checkPostgresDatabase(url)).rejects.toThrow(/on the worker 127\.0\.0\.1/);
  await cluster.workers[1]?.configure(`RESET ${setting}`);
  await expect(checkPostgresDatabase(url)).resolves.toBeUndefined();
});

test("workers that warn of their collation at the start of every connection serve as any other", async () => {
  const update = (version: string): Promise<unknown> =>
    Promise.all(workers.map((one) => runSql(one, `UPDATE pg_database SET datcollversion = ${version}`)));
  const workers = cluster.workers.map((node) => node.url);
  const [[first = 0n] = [], [second = 0n] = []] = await plantsByWorker();
  await update("'0'");
  onTestFinished(async () => void (await update("pg_database_collation_actual_version(oid)")));
  await expect(checkPostgresDatabase(url)).resolves.toBeUndefined();
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  expect(store.problem).toBeUndefined();
  await expect(store.delete(first, deleteCall())).resolves.toBe(true);
  await expect(store.delete(second, deleteCall())).resolves.toBe(true);
});

test("a store does not open where the warnings of workers would not arrive", async () => {
  const session = await openSession();
  await session.run("SET citus.worker_min_messages = notice");
  await expect(session.shards.learn(session)).rejects.toThrow(
    /to debug1 for the role, because .* from being set .* unnoticed$/,
  );
  await session.close();
});
