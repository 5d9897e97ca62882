import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import type { Deletion } from "../../../../../../src/stores/postgres/delete/deletion.ts";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "../../../../../support/plants/delete-call.ts";
import { countAttempts, failAttempts } from "../../../../../support/plants/failing-attempts.ts";
import { configOf, openClient, runSql } from "../../../../../support/plants/postgres-server.ts";
import {
  runBatchWith,
  runBatch,
  failToDefer,
  callersOf,
  listenersOf,
  plantsOf,
  sentDeletion,
} from "../../../../../support/plants/run-batch.ts";
import { createPlantsUpTo, startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const minuteMs = 60_000;
const lockTimeouts = { lockTimeoutMs: 50, statementTimeoutMs: minuteMs, responseTimeoutMs: minuteMs };
const away = "the plant store cannot process the request at the moment";
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

const server = await startPostgresOfFile(["-c", "deadlock_timeout=50ms"]);

describe("a batch with plants locked by another transaction", () => {
  test.each([
    { name: "deletes the other plants", arrange: "SELECT", lock: "SELECT FROM plants WHERE id IN (2, 5) FOR UPDATE" },
    {
      name: "deletes the plants without locked dependent rows",
      arrange: `CREATE TABLE beds (plant bigint REFERENCES plants ON DELETE CASCADE);
                INSERT INTO beds SELECT generate_series(1, 6)`,
      lock: "SELECT FROM beds WHERE plant IN (2, 5) FOR UPDATE",
    },
    {
      name: "deletes the other plants in parts without waiting again",
      arrange: "SELECT",
      lock: "SELECT FROM plants WHERE id IN (2, 5) FOR UPDATE",
      sqlStates: ["", "P0001"],
      attempts: 4,
    },
  ])("$name, while the lock is held", async ({ arrange, lock, sqlStates, attempts }) => {
    const url = await createPlantsUpTo(server, 6);
    await runSql(url, arrange);
    if (sqlStates !== undefined) await failAttempts(url, "DELETE ON plants", sqlStates);
    const other = await openClient(url, `BEGIN; ${lock}`);
    const session = new Session(readServerUrl(url), lockTimeouts);
    const { deletions, results } = listenersOf(1n, 2n, 3n, 2n, 9n, 5n, 6n, 6n);
    const defer: bigint[] = [];
    // Settles the completed deletions, as the queue does.
    await runBatchWith(session, deletions, { defer: ({ id }) => defer.push(id) });
    expect(results).toEqual([true, undefined, true, undefined, false, undefined, true, false]);
    expect(defer).toEqual([2n, 2n, 5n]);
    expect(await plantsOf(url)).toEqual(["2", "4", "5"]);
    if (attempts !== undefined) expect(await countAttempts(url)).toBe(attempts);
    await other.end();
    await session.close();
  });

  test.each([
    { name: "reports a plant as deleted by its own record", recordedBy: "this batch", isDeleted: true },
    { name: "does not report a plant as deleted by another batch's record", recordedBy: "another", isDeleted: false },
  ])("$name after an attempt in doubt", async ({ recordedBy, isDeleted }) => {
    const url = await createPlantsUpTo(server, 3);
    await runSql(url, "DELETE FROM plants WHERE id = 3");
    const token = randomUUID();
    const recorded = recordedBy === "this batch" ? token : randomUUID();
    // The attempt that was lost is still running.
    const lost = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await lost.query(`INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${recorded}')`);
    const session = new Session(readServerUrl(url), lockTimeouts);
    const deletions = callersOf(1n, 1n, 3n, 2n);
    const defer: Deletion[] = [];
    const options = { defer: (one: Deletion) => void defer.push(one), token };
    await expect(runBatchWith(session, deletions, options)).resolves.toEqual([undefined, undefined, false, true]);
    // The first deletion is in doubt, so it is never reported as not done.
    expect(defer.map((one) => one.token)).toEqual([token, undefined]);
    await lost.query("COMMIT");
    await lost.end();
    const [first] = defer;
    await expect(runBatchWith(session, defer.slice(0, 1), { ...options, token: first?.token })).resolves.toEqual([
      isDeleted,
    ]);
    await session.close();
  });

  test("waits for a locked table instead of deferring deletions", async () => {
    const url = await createPlantsUpTo(server, 2);
    const other = await openClient(url, "BEGIN; LOCK TABLE plants IN SHARE MODE");
    const session = new Session(readServerUrl(url), lockTimeouts);
    const outcomes = runBatch(session, callersOf(1n, 2n));
    const timedOut = (): string[] => server.log.filter((line) => line.includes("lock timeout"));
    const before = timedOut().length;
    // The batch was attempted both with and without waiting for locked plants.
    await expect.poll(() => timedOut().length).toBeGreaterThan(before + 2);
    await other.end();
    await expect(outcomes).resolves.toEqual([true, true]);
    await session.close();
  });
});

test("a batch that loses a deadlock is retried", async () => {
  const url = await createPlantsUpTo(server, 3);
  const first = new Client(configOf(url));
  const other = new Client(configOf(url));
  await Promise.all([first.connect(), other.connect()]);
  const otherPid = String((await other.query("SELECT pg_backend_pid() AS pid")).rows[0].pid);
  const isWaiting = (pid: string): Promise<unknown> =>
    runSql(url, `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid ${pid}`);

  // First, the batch locks plant 1 and waits for plant 2.
  await first.query("BEGIN");
  await first.query("SELECT FROM plants WHERE id = 2 FOR UPDATE");
  await other.query("SET deadlock_timeout = '60s'");
  await other.query("BEGIN");
  await other.query("SELECT FROM plants WHERE id = 3 FOR UPDATE");
  const timeouts = { lockTimeoutMs: minuteMs, statementTimeoutMs: minuteMs, responseTimeoutMs: minuteMs };
  const session = new Session(readServerUrl(url), timeouts);
  // A plant that is still locked at the retry is deferred.
  const deferred: Deletion[] = [];
  const outcomes = runBatchWith(session, callersOf(1n, 2n, 3n), { defer: (one) => void deferred.push(one) });
  await expect.poll(() => isWaiting(`<> ${otherPid}`)).not.toEqual([]);
  // Then the other transaction, which has locked plant 3, waits for plant 1.
  const locked = other.query("SELECT FROM plants WHERE id = 1 FOR UPDATE");
  await expect.poll(() => isWaiting(`= ${otherPid}`)).not.toEqual([]);
  // Finally, the batch waits for plant 3, which completes the deadlock. The server aborts the batch.
  await first.query("COMMIT");
  await locked;
  expect(server.log.filter((line) => line.includes("deadlock detected"))).not.toEqual([]);
  await other.query("COMMIT");
  await Promise.all([first.end(), other.end()]);

  const all = [...(await outcomes), ...(await runBatch(session, deferred))];
  expect(all.filter((outcome) => outcome !== undefined)).toEqual([true, true, true]);
  await session.close();
  expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "3" }]);
});

test.each([
  { name: "a split batch", token: undefined, refusal: away },
  { name: "a split batch in doubt", token: randomUUID(), refusal: unknown },
])("$name starts no further part after its deadline", async ({ token, refusal }) => {
  const url = await createPlantsUpTo(server, 8);
  await runSql(url, "CREATE TABLE beds (plant bigint REFERENCES plants (id))");
  await runSql(url, "INSERT INTO beds VALUES (2), (7)");
  const session = new Session(readServerUrl(url));
  const results: unknown[] = Array.from({ length: 8 }, () => undefined);
  const impatient = results.map((_, i) =>
    sentDeletion(
      BigInt(i + 1),
      deleteCall(),
      (deleted) => (results[i] = deleted),
      (reason) => {
        results[i] = ConnectError.from(reason).rawMessage;
        // Runs while the first quarter is running, before the second half.
        session.deadlineMs = 0;
      },
    ),
  );
  const options = { defer: failToDefer, token };
  await expect(runBatchWith(session, impatient, options)).resolves.toEqual([
    true,
    ...Array.from({ length: 7 }, () => undefined),
  ]);
  await session.close();
  expect(results).toEqual([true, "the database does not allow deleting plant 2", ...Array<string>(6).fill(refusal)]);
  expect(await runSql(url, "SELECT plant_id FROM deletions")).toEqual([{ plant_id: "1" }]);
  expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "7" }]);
});

test("a split batch excludes cancelled calls from its other parts", async () => {
  const url = await createPlantsUpTo(server, 4);
  await runSql(url, "CREATE TABLE beds (plant bigint REFERENCES plants (id)); INSERT INTO beds VALUES (1)");
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const results: unknown[] = [];
  const deletions = [1n, 2n, 3n, 4n].map((id) =>
    sentDeletion(id, deleteCall(id === 4n ? { signal: controller.signal } : {}), undefined, (reason) => {
      results.push(ConnectError.from(reason).rawMessage);
      controller.abort("too late");
    }),
  );
  await expect(runBatch(session, deletions)).resolves.toEqual([undefined, true, true, undefined]);
  await session.close();
  expect(results).toEqual(["the database does not allow deleting plant 1", "too late"]);
  expect(await plantsOf(url)).toEqual(["1", "4"]);
});

test("a split batch does not report a cancelled call's plant as protected", async () => {
  const url = await createPlantsUpTo(server, 2);
  await failAttempts(url, "DELETE ON plants", ["P0001"]);
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const results: unknown[] = [];
  const outcomes = runBatch(
    session,
    [deleteCall(), deleteCall({ signal: controller.signal })].map((call, i) =>
      sentDeletion(
        BigInt(i + 1),
        call,
        (deleted) => (results[i] = deleted),
        (reason) => (results[i] = ConnectError.from(reason).rawMessage),
      ),
    ),
  );
  // The first attempt reads no signals.
  controller.abort(new Error("too late"));
  await expect(outcomes).resolves.toEqual([true, undefined]);
  await session.close();
  expect(results).toEqual([true, "too late"]);
});
