import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Deletion } from "../../../../../../src/stores/postgres/delete/deletion.ts";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { singleServer } from "../../../../../../src/stores/postgres/delete/single-server.ts";
import { startCuttingProxy } from "../../../../../support/plants/cutting-proxy.ts";
import { deleteCall } from "../../../../../support/plants/delete-call.ts";
import { countAttempts, failAlways, failAttempts } from "../../../../../support/plants/failing-attempts.ts";
import { openClient, runSql } from "../../../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../../../support/plants/schema-of.ts";
import {
  runBatchAt,
  runBatchWith,
  runBatch,
  sentDeletion,
  failToDefer,
  callersOf,
  callerWith,
  listenersOf,
  plantsOf,
} from "../../../../../support/plants/run-batch.ts";
import { createPlantsUpTo, startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const minuteMs = 60_000;
const lockTimeouts = { lockTimeoutMs: 50, statementTimeoutMs: minuteMs, responseTimeoutMs: minuteMs };
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

const server = await startPostgresOfFile(["-c", "deadlock_timeout=50ms"]);

describe("a committed batch with a lost response", () => {
  test.each([
    { name: "the lookup succeeds", sqlStates: [] },
    { name: "the lookup is first rolled back", sqlStates: ["40001", "55P03"] },
    { name: "the lookup first fails for lack of resources", sqlStates: ["53100", "57P03"] },
    { name: "the outcome of the first lookup is unknown", sqlStates: ["XX000", "40001"] },
  ])("if $name, is settled only by its own records", async ({ sqlStates }) => {
    const url = await createPlantsUpTo(server, 4);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    // Plant 4 was deleted before.
    await expect(runBatch(session, callersOf(4n))).resolves.toEqual([true]);
    await failAttempts(url, "UPDATE ON deletions", sqlStates);
    // A lookup updates only its own records.
    await runSql(
      url,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON deletions FOR EACH ROW WHEN (OLD.plant_id = 4) EXECUTE FUNCTION refuse()`,
    );
    const wasCut = proxy.cutNext("before-reply");
    const outcomes = runBatch(session, callersOf(1n, 2n, 4n, 9n, 1n));
    await wasCut;
    await expect(outcomes).resolves.toEqual([true, true, false, false, false]);
    await session.close();
    expect(await countAttempts(url)).toBe(sqlStates.length + 1);
    expect(await plantsOf(url)).toEqual(["3"]);
    expect(await runSql(url, "SELECT plant_id FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1" },
      { plant_id: "2" },
      { plant_id: "4" },
    ]);
  });
});

describe("a committed batch with a lost response and a refused retry", () => {
  test("settles each deletion by its record", async () => {
    const url = await createPlantsUpTo(server, 3);
    await using proxy = await startCuttingProxy(server.socketFolder);
    // The first statement succeeds. The retry, its first half, and plant 1 alone are refused.
    await failAttempts(url, "DELETE ON plants", ["", "P0001", "P0001", "P0001"]);
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    void proxy.cutNext("before-reply");
    const defer: Deletion[] = [];
    const callers = callersOf(1n, 2n, 4n, 1n);
    const outcomes = await runBatchWith(session, callers, { defer: (one) => defer.push(one) });
    // Plant 1's second deletion is retried, because the record belongs to the first.
    expect(outcomes).toEqual([true, true, false, undefined]);
    expect(defer).toEqual([callers[3]]);
    await expect(runBatch(session, defer)).resolves.toEqual([false]);
    await session.close();
    expect(await plantsOf(url)).toEqual(["3"]);
    expect(await runSql(url, "SELECT plant_id FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1" },
      { plant_id: "2" },
    ]);
  });

  test("is in doubt if a trigger prevents the record lookup", async () => {
    const url = await createPlantsUpTo(server, 2);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await runSql(
      url,
      `CREATE FUNCTION silence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER silence BEFORE UPDATE ON deletions FOR EACH ROW EXECUTE FUNCTION silence()`,
    );
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    void proxy.cutNext("before-reply");
    const { deletions, results } = listenersOf(1n, 2n);
    await expect(runBatch(session, deletions)).resolves.toEqual([undefined, undefined]);
    await session.close();
    expect(results).toEqual([unknown, unknown]);
    expect(await plantsOf(url)).toEqual([]);
  });
});

describe("a deletion in doubt with a refused retry", () => {
  test.each([
    { sqlState: "P0001", deletions: callersOf(1n), server: "healthy" },
    // With two deletions, the batch ends as soon as the lookup fails for the first.
    { sqlState: "XX000", deletions: callersOf(1n, 2n), server: "unavailable" },
  ])('stays in doubt if its record lookup also fails with "$sqlState"', async ({ sqlState, deletions, ...failure }) => {
    const url = await createPlantsUpTo(server, 2);
    await failAttempts(url, "DELETE ON plants", ["P0001", "P0001"]);
    await failAlways(url, "UPDATE ON deletions", sqlState);
    const session = new Session(readServerUrl(url));
    const [before] = await session.query("SELECT pg_backend_pid()");
    const ended = runBatchWith(session, deletions, { defer: failToDefer, token: randomUUID() });
    await expect(ended).rejects.toMatchObject({ ending: { outcome: "unknown" }, ...failure });
    // The session opens a new connection, because the old connection may not see the record.
    await expect(session.query("SELECT pg_backend_pid()")).resolves.not.toEqual([before]);
    await session.close();
  });

  test.each([
    { name: "its plant", arrange: "SELECT", lock: "SELECT FROM plants FOR UPDATE", sqlStates: ["P0001"] },
    {
      name: "a row that depends on its plant",
      arrange: "CREATE TABLE beds (plant bigint REFERENCES plants ON DELETE CASCADE); INSERT INTO beds VALUES (1)",
      lock: "SELECT FROM beds FOR UPDATE",
      sqlStates: [],
    },
  ])("stays in doubt and is deferred if $name is locked", async ({ arrange, lock, sqlStates }) => {
    const url = await createPlantsUpTo(server, 1);
    await runSql(url, arrange);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const other = await openClient(url, `BEGIN; ${lock}`);
    const token = randomUUID();
    const defer: Deletion[] = [];
    const options = { defer: (one: Deletion) => void defer.push(one), token };
    const session = new Session(readServerUrl(url), lockTimeouts);
    const [before] = await session.query("SELECT pg_backend_pid()");
    await expect(runBatchWith(session, callersOf(1n), options)).resolves.toEqual([undefined]);
    expect(defer).toMatchObject([{ id: 1n, token }]);
    // The connection is kept, because the server is healthy.
    await expect(session.query("SELECT pg_backend_pid()")).resolves.toEqual([before]);
    await session.close();
    await other.end();
  });

  test("waits for the lost attempt's outcome", async () => {
    const url = await createPlantsUpTo(server, 1);
    // The first entry is for the lost attempt's statement.
    await failAttempts(url, "DELETE ON plants", ["", "P0001"]);
    const token = randomUUID();
    const lost = await openClient(url, "BEGIN; DELETE FROM plants");
    await lost.query(`INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${token}')`);
    const session = new Session(readServerUrl(url));
    const outcomes = runBatchWith(session, callersOf(1n), { defer: failToDefer, token });
    await expect
      .poll(() => runSql(url, "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))
      .not.toEqual([]);
    await lost.query("COMMIT");
    await lost.end();
    await expect(outcomes).resolves.toEqual([true]);
    await session.close();
  });

  test("reports a recorded plant as deleted even if it exists again", async () => {
    const url = await createPlantsUpTo(server, 1);
    await failAttempts(url, "DELETE ON plants", ["P0001"]);
    const token = randomUUID();
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, 'tester', 'r', '${token}')`,
    );
    const session = new Session(readServerUrl(url));
    const outcomes = runBatchWith(session, callersOf(1n), { defer: failToDefer, token });
    await expect(outcomes).resolves.toEqual([true]);
    await session.close();
    expect(await plantsOf(url)).toEqual(["1"]);
  });

  test("is settled without a standby wait if its plant exists", async () => {
    const url = await createPlantsUpTo(server, 1);
    await runSql(
      url,
      `CREATE TABLE beds (plant bigint REFERENCES plants);
       INSERT INTO beds VALUES (1)`,
    );
    await failAttempts(url, "UPDATE ON deletions", []);
    const session = new Session(readServerUrl(url));
    const requested = vi.spyOn(session, "query");
    const options = { defer: failToDefer, token: randomUUID() };
    await expect(runBatchWith(session, [callerWith(1n, "key")], options)).resolves.toEqual([undefined]);
    await session.close();
    expect(JSON.stringify(requested.mock.calls)).not.toContain("synchronous_standby_names");
    // Two lookups, by the key before the retry, and by the record.
    expect(await countAttempts(url)).toBe(2);
  });
});

test("after a cancelled deletion, the plant's next deletion gets the batch token", async () => {
  const url = await createPlantsUpTo(server, 2);
  const other = await openClient(url, "BEGIN; SELECT FROM plants FOR UPDATE");
  const session = new Session(readServerUrl(url), lockTimeouts);
  const controller = new AbortController();
  const cancelled = sentDeletion(1n, deleteCall({ signal: controller.signal, idempotencyKey: "key" }));
  const next = callerWith(1n, "key");
  const [alone] = callersOf(2n);
  const placement = singleServer(schemaOf(session));
  const cancelling: typeof placement = {
    ...placement,
    findKeyRecords: (...lookup) => {
      controller.abort("too late");
      return placement.findKeyRecords(...lookup);
    },
  };
  const token = randomUUID();
  const defer: Deletion[] = [];
  const options = { defer: (one: Deletion) => void defer.push(one), token, placement: cancelling };
  await runBatchAt(
    session,
    [cancelled, next, alone].flatMap((one) => one ?? []),
    options,
  );
  expect(cancelled.ending).toEqual({ outcome: "unavailable", cause: "too late" });
  expect(defer.map((one) => ({ isNext: one === next, token: one.token }))).toEqual([
    { isNext: true, token },
    { isNext: false, token },
  ]);
  await session.close();
  await other.end();
});

describe("a batch that has deleted a plant", () => {
  /** Returns a plant's URL for a user whose further statements the server refuses. */
  async function createLastPlant(): Promise<string> {
    const url = await createPlantsUpTo(server, 1);
    const schema = schemaOf(new Session(readServerUrl(url))).quoted;
    await runSql(
      url,
      `CREATE ROLE stripped LOGIN; GRANT USAGE ON SCHEMA ${schema} TO stripped;
       GRANT ALL ON plants, deletions TO stripped;
       CREATE FUNCTION strip() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
         $$ BEGIN REVOKE ALL ON ${schema}.plants, ${schema}.deletions FROM stripped; RETURN NULL; END $$;
       CREATE TRIGGER strip AFTER DELETE ON plants EXECUTE FUNCTION strip()`,
    );
    onTestFinished(async () => void (await runSql(url, "DROP OWNED BY stripped; DROP ROLE stripped")));
    return url.replace("user=tester", "user=stripped");
  }

  test("sends no further statement when it skips locked plants", async () => {
    const session = new Session(readServerUrl(await createLastPlant()));
    const options = { defer: failToDefer, isCareful: true };
    await expect(runBatchWith(session, callersOf(1n, 9n), options)).resolves.toEqual([true, false]);
    await session.close();
  });

  test.each([
    { name: "a missing plant", deletions: callersOf(1n, 9n) },
    { name: "another caller's key", deletions: ["a", "b"].map((key) => callerWith(1n, key)) },
  ])("is in doubt if the lookup for $name fails", async ({ deletions }) => {
    const url = await createLastPlant();
    const session = new Session(readServerUrl(url));
    await expect(runBatch(session, deletions)).rejects.toMatchObject({
      ending: { outcome: "unknown" },
      server: "refusing",
    });
    await session.close();
    expect(await plantsOf(url.replace("user=stripped", "user=tester"))).toEqual([]);
  });
});
