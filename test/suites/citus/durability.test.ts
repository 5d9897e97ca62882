import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { attemptBatch, findOutcomeOfRefused } from "../../../src/stores/postgres/delete/attempt-batch.ts";
import { prepareBatch } from "../../../src/stores/postgres/delete/prepared-batch.ts";
import { checkPostgresStore } from "../../../src/stores/postgres/all-plants/check-store.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import type { Placement } from "../../../src/stores/postgres/delete/placement.ts";
import type { Session } from "../../../src/stores/postgres/server/session.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { callersOf } from "../../support/plants/run-batch.ts";
import { configOf, runSql } from "../../support/plants/postgres-server.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { citusBuild, programsFolder } from "./build.ts";
import { type CitusCluster, startCitus } from "./citus-cluster.ts";
import { openCitusSession } from "./open-session.ts";

let cluster: CitusCluster;
let url: string;
beforeAll(async () => {
  cluster = await startCitus();
  url = await cluster.createSchema();
  await migratePostgres(url);
  await growPlants();
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, subject, request_id, batch) SELECT unnest('{${recorded.join()}}'::bigint[]), '', '', '${token}'`,
  );
});
beforeEach(() => growPlants());
afterAll(() => cluster?.[Symbol.asyncDispose]());

const ids = Array.from({ length: 40 }, (_, i) => BigInt(i));
const absent = Array.from({ length: 40 }, (_, i) => BigInt(i + 40));
/** Missing plants, which were deleted with the token. */
const recorded = Array.from({ length: 10 }, (_, i) => BigInt(i + 80));
const token = "00000000-0000-4000-8000-000000000000";

async function growPlants(): Promise<void> {
  await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[]) ON CONFLICT DO NOTHING`);
}

function openSession(): ReturnType<typeof openCitusSession> {
  return openCitusSession(url);
}

/** Each worker's plants, in the cluster's order. */
async function plantsByWorker(among = ids): Promise<readonly (readonly bigint[])[]> {
  const rows = await runSql(
    url,
    `SELECT nodeport, array_agg(id) AS ids FROM unnest('{${among.join()}}'::bigint[]) AS id
     JOIN citus_shards ON shardid = get_shard_id_for_distribution_column('plants', id) GROUP BY 1`,
  );
  const ofPort = new Map(rows.map((row) => [row["nodeport"], row["ids"]]));
  return cluster.workers.map(({ port }) => [ofPort.get(port)].flat().map((id) => BigInt(String(id))));
}

/** Resolves to the process id of the first statement on the worker that waits for standbys. */
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

/** Cancels every wait by a worker for its standbys until a promise settles. */
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

/** The URL for the worker whose settings are changed. */
function worker(): string {
  return cluster.workers[1]?.url ?? "";
}

/** Cancels waits as an operator does. The worker then commits without its standbys. */
async function cancelWaits(): Promise<void> {
  await runSql(worker(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
}

/** Makes the worker send a warning whenever it cancels a statement, until the test ends. */
async function warnOfCancels(): Promise<void> {
  const here = ["citus.enable_ddl_propagation = off", "citus.enable_alter_role_set_propagation = off"];
  const alone = [...here, "synchronous_commit = local"].map((setting) => `SET ${setting};`).join(" ");
  onTestFinished(async () => {
    await runSql(worker(), `${alone} ALTER ROLE tester RESET search_path; DROP SCHEMA warning CASCADE`);
  });
  await runSql(
    worker(),
    `${alone} CREATE SCHEMA warning;
     CREATE FUNCTION warning.pg_cancel_backend(pid integer) RETURNS boolean LANGUAGE plpgsql AS
     $$ BEGIN RAISE WARNING 'cancelled'; RETURN pg_catalog.pg_cancel_backend(pid); END $$;
     ALTER ROLE tester SET search_path = warning, pg_catalog, public`,
  );
}

describe("a worker without its synchronous standby", () => {
  beforeEach(async () => {
    await cluster.workers[1]?.configure("SET synchronous_standby_names = 'nobody'");
  });
  afterEach(async () => {
    await cluster.workers[1]?.configure("RESET synchronous_standby_names");
  });

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

  test("does not confirm another worker's batch when its standby wait is cancelled", async () => {
    const [[one] = [], [, ...others] = []] = await plantsByWorker();
    const { session } = await openSession();
    const batch = `'{${others.slice(0, 2).join()}}', '{a,a}', '{r,r}', '${token}', NULL, false`;
    const outcomes = session.query(`SELECT deleted FROM plantstore_delete(${one}, ${batch})`).then(String, String);
    expect(await whileCancelling(outcomes)).toMatch(/a worker sent a warning/);
    await session.close();
  });

  describe("another process's deletions", () => {
    type Plants = () => Promise<readonly bigint[]>;
    const absentHere: Plants = async () => (await plantsByWorker(absent))[1] ?? [];
    const absentOfBoth: Plants = async () => {
      const [[elsewhere = 0n] = [], [here = 0n] = []] = await plantsByWorker(absent);
      return [elsewhere, here];
    };

    test.each([
      { name: "a batch for two workers", plants: absentOfBoth, isCareful: false },
      { name: "a batch for two workers without lock waits", plants: absentOfBoth, isCareful: true },
      {
        name: "a deletion by the coordinator",
        plants: async () => (await absentHere()).slice(0, 1),
        isCareful: false,
        isDelegated: false,
      },
      {
        name: "a coordinator's batch without lock waits",
        plants: absentHere,
        isCareful: true,
        isDelegated: false,
      },
      {
        name: "a coordinator's batch for two workers",
        plants: absentOfBoth,
        isCareful: false,
        isDelegated: false,
      },
      {
        name: "a coordinator's batch for two workers without lock waits",
        plants: absentOfBoth,
        isCareful: true,
        isDelegated: false,
      },
    ])("are not assumed durable when $name finds them", async ({ plants, isCareful, isDelegated = true }) => {
      const { session, placement } = await openSession();
      const pending = callersOf(...(await plants()));
      await cluster.delegate(isDelegated);
      onTestFinished(() => cluster.delegate(true));
      const mode = { placement, token, isInDoubt: false, isCareful };
      const attempt = attemptBatch(session, pending, mode);
      const fault = { message: expect.stringMatching(/a worker sent a warning/) };
      expect(await whileCancelling(attempt)).toMatchObject({ fault });
      await session.close();
    });

    test.each([
      { name: "a worker", isDelegated: true },
      { name: "the coordinator", isDelegated: false },
    ])("are not assumed durable when $name looks up a refused plant", async ({ isDelegated }) => {
      const { session, placement } = await openSession();
      await cluster.delegate(isDelegated);
      onTestFinished(() => cluster.delegate(true));
      const batch = prepareBatch(token, callersOf(...(await absentHere()).slice(0, 1)));
      expect(await whileCancelling(findOutcomeOfRefused(session, placement, batch).then(String, String))).toMatch(
        /a worker sent a warning/,
      );
      await session.close();
    });
  });

  describe("a cancelled statement", () => {
    const timeouts = { lockTimeoutMs: 100, statementTimeoutMs: 5_000, responseTimeoutMs: 3_000 };
    const deletionOf =
      (count: number) =>
      async (session: Session, placement: Placement): Promise<unknown> => {
        const [, here = []] = await plantsByWorker(absent);
        return await placement.deletePlants(session, prepareBatch(token, callersOf(...here.slice(0, count))));
      };

    test.each([
      {
        name: "a write check",
        run: (session: Session, placement: Placement) => placement.checkWrite(session),
        isDelegated: true,
      },
      { name: "a deletion by the coordinator", run: deletionOf(1), isDelegated: false },
      { name: "a two-phase deletion by the coordinator", run: deletionOf(10), isDelegated: false },
      {
        name: "a two-phase deletion with a cancellation warning",
        run: deletionOf(10),
        isDelegated: false,
        prepare: warnOfCancels,
      },
    ])("in $name leaves no active connection behind", async ({ run, isDelegated, prepare }) => {
      await prepare?.();
      const { session, placement } = await openCitusSession(url, timeouts);
      await cluster.delegate(isDelegated);
      onTestFinished(() => cluster.delegate(true));
      await run(session, placement).catch(() => undefined);
      const look = async (): Promise<unknown> => {
        session.discard();
        await session.connect();
        const running = "application_name = 'plantstore' AND state = 'active'";
        return await runSql(url, `SELECT FROM pg_stat_activity WHERE ${running}`);
      };
      await expect.poll(look).toEqual([]);
      await session.close();
    });

    test.each([
      { ended: "the session", limits: timeouts, first: "Error: the connection was lost" },
      {
        ended: "the server",
        limits: { ...timeouts, statementTimeoutMs: 1_000, responseTimeoutMs: 6_000 },
        first: "connected",
      },
    ])("delays only one connection if $ended cancels it while a worker hangs", async ({ limits, first }) => {
      const { session, placement } = await openCitusSession(url, limits);
      await cluster.delegate(false);
      onTestFinished(() => cluster.delegate(true));
      await deletionOf(1)(session, placement).catch(() => session.discard());
      const look = (): Promise<unknown> => session.query("SELECT 'connected'").then(String, String);
      cluster.workers[1]?.signal("SIGSTOP");
      const looks = [await look(), await look()];
      cluster.workers[1]?.signal("SIGCONT");
      expect(looks).toEqual([first, "connected"]);
      await session.close();
    });
  });

  test("keeps another client's standby wait when the store's wait is cancelled", async () => {
    const [, here = []] = await plantsByWorker();
    const connect = async (name: string): Promise<Client> => {
      const client = new Client({ ...configOf(url), application_name: name });
      await client.connect();
      return client;
    };
    const [stranger, store] = [await connect("stranger"), await connect("plantstore")];
    const [strange, own] = [stranger, store].map((client, i) =>
      client.query("DELETE FROM plants WHERE id = $1", [here[i]]),
    );
    const waits = "SELECT application_name FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await expect.poll(() => runSql(worker(), waits)).toHaveLength(2);
    const { session, location } = await openSession();
    for (const { processID } of [stranger, store]) location.workers.addPossibleWait(processID);
    await location.workers.cancelWaits(session);
    await own;
    expect(await runSql(worker(), waits)).toHaveLength(1);
    await cancelWaits();
    await strange;
    await Promise.all([stranger.end(), store.end(), session.close()]);
  });

  test.each([
    { name: "with default settings", left: "" },
    // Behind a pooler, another client may have hidden warnings.
    { name: "with warnings hidden by another client", left: "SET client_min_messages = error" },
  ])("$name does not confirm a record when its standby wait is cancelled", async ({ left }) => {
    const [, [here = 0n] = []] = await plantsByWorker(recorded);
    const { session, placement } = await openSession();
    await session.run(left);
    const batch = prepareBatch(token, callersOf(here));
    const found = findOutcomeOfRefused(session, placement, batch).then(String, String);
    expect(await whileCancelling(found)).toMatch(/a worker sent a warning/);
    await session.close();
  });
});

test("a coordinator without its synchronous standby affects neither deletions nor write checks", async () => {
  await cluster.coordinator.configure("SET synchronous_standby_names = 'nobody'");
  onTestFinished(() => cluster.coordinator.configure("RESET synchronous_standby_names"));
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  await expect(store.delete(ids[0] ?? 0n, deleteCall())).resolves.toBe(true);
  await expect(store.delete(absent[0] ?? 0n, deleteCall())).resolves.toBe(false);
  const { session, placement } = await openSession();
  onTestFinished(() => session.close());
  await expect(placement.checkWrite(session)).resolves.toBeUndefined();
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
  const store = await openPostgresStore({ url });
  await expect(store.delete(here, deleteCall())).resolves.toBe(false);
  await store.close();
});

test.each(["fsync", "synchronous_commit"])(
  "a worker with %s = off refuses deletions, with the reason",
  async (setting) => {
    const [, [id = 0n] = []] = await plantsByWorker();
    const store = await openPostgresStore({ url });
    await cluster.workers[1]?.configure(`SET ${setting} = off`);
    await expect(store.delete(id, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toMatch(/so commits would not be durable/);
    await store.close();
    const { session, placement } = await openSession();
    await expect(placement.checkWrite(session)).rejects.toThrow(/so commits would not be durable/);
    await session.close();
    await expect(openPostgresStore({ url })).rejects.toThrow(/on the worker 127\.0\.0\.1/);
    await expect(checkPostgresStore(url)).rejects.toThrow(/on the worker 127\.0\.0\.1/);
    await cluster.workers[1]?.configure(`RESET ${setting}`);
    await expect(checkPostgresStore(url)).resolves.toEqual([]);
  },
);

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

test("a store does not open if citus.worker_min_messages hides workers' warnings", async () => {
  const { session, location } = await openSession();
  await session.run("SET citus.worker_min_messages = notice");
  await expect(location.refresh(session)).rejects.toThrow(
    /to debug1 for the role, because .* drops the values .* unnoticed$/,
  );
  await session.close();
});
