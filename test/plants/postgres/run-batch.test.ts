import { Code, ConnectError } from "@connectrpc/connect";
import { Client } from "pg";
import { expect, test } from "vitest";
import { migratePostgres } from "../../../src/plants/postgres/plant-database.ts";
import { runBatch } from "../../../src/plants/postgres/run-batch.ts";
import { readServerUrl } from "../../../src/plants/postgres/server-url.ts";
import { Session } from "../../../src/plants/postgres/session.ts";
import { deleteCall } from "../../support/delete-call.ts";
import { configOf, runSql, startPostgres } from "../../support/postgres-server.ts";

const minuteMs = 60_000;

test("repeats a batch that was the victim of a deadlock", async () => {
  await using server = await startPostgres(["-c", "deadlock_timeout=50ms"]);
  const url = await server.createSchema();
  await migratePostgres(url);
  await runSql(url, "INSERT INTO plants VALUES (1), (2), (3)");
  const first = new Client(configOf(url));
  const other = new Client(configOf(url));
  await Promise.all([first.connect(), other.connect()]);
  const otherPid = String((await other.query("SELECT pg_backend_pid() AS pid")).rows[0].pid);
  const isWaiting = (pid: string): Promise<unknown> =>
    runSql(url, `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid ${pid}`);

  // The batch takes plant 1 and waits for plant 2 …
  await first.query("BEGIN");
  await first.query("SELECT FROM plants WHERE id = 2 FOR UPDATE");
  await other.query("SET deadlock_timeout = '60s'");
  await other.query("BEGIN");
  await other.query("SELECT FROM plants WHERE id = 3 FOR UPDATE");
  const limits = { lockTimeoutMs: minuteMs, statementTimeoutMs: minuteMs, answerTimeoutMs: minuteMs };
  const session = new Session(readServerUrl(url), limits);
  const taken = [1n, 2n, 3n].map((id) => ({ id, call: deleteCall(), resolve: () => {}, reject: () => {} }));
  const outcomes = runBatch(session, taken);
  await expect.poll(() => isWaiting(`<> ${otherPid}`)).not.toEqual([]);
  // … the other transaction, which holds plant 3, waits for plant 1 …
  const locked = other.query("SELECT FROM plants WHERE id = 1 FOR UPDATE");
  await expect.poll(() => isWaiting(`= ${otherPid}`)).not.toEqual([]);
  // … and the batch goes on to plant 3, where it closes the circle and is the one to notice.
  await first.query("COMMIT");
  await locked;
  expect(server.log.filter((line) => line.includes("deadlock detected"))).not.toEqual([]);
  await other.query("COMMIT");
  await Promise.all([first.end(), other.end()]);

  await expect(outcomes).resolves.toEqual([true, true, true]);
  await session.close();
  expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "3" }]);
});

test("leaves who gives up out of the tries that follow, and tells them why", async () => {
  await using server = await startPostgres();
  const url = await server.createSchema();
  await migratePostgres(url);
  await runSql(url, "INSERT INTO plants VALUES (1), (2), (3)");
  await server.stop("fast");
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const told: unknown[] = [];
  const calls = [deleteCall(), deleteCall({ signal: controller.signal }), deleteCall()];
  const taken = calls.map((call, i) => ({
    id: BigInt(i + 1),
    call,
    resolve: () => {},
    reject: (reason: unknown) => told.push(reason),
  }));
  const outcomes = runBatch(session, taken);
  // The server takes longer to start than a connection to a socket that nobody listens on takes to fail.
  controller.abort("too late");
  await server.start();
  await expect(outcomes).resolves.toEqual([true, false, true]);
  expect(new Set(told)).toEqual(new Set(["too late"]));
  await session.close();
  expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "2" }]);
});

test("begins no other part of a divided batch once its time is over", async () => {
  await using server = await startPostgres();
  const url = await server.createSchema();
  await migratePostgres(url);
  await runSql(url, "INSERT INTO plants SELECT generate_series(1, 8)");
  await runSql(url, "CREATE TABLE beds (plant bigint REFERENCES plants (id))");
  await runSql(url, "INSERT INTO beds VALUES (2), (7)");
  const session = new Session(readServerUrl(url));
  const patience = new AbortController();
  // Only what a call is told first counts.
  const told = new Map<bigint, unknown>();
  const tell = (id: bigint, outcome: unknown): unknown => told.has(id) || told.set(id, outcome);
  const taken = [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n].map((id) => ({
    id,
    call: deleteCall(),
    resolve: (deleted: boolean) => void tell(id, deleted),
    reject: (reason: unknown) => {
      tell(id, ConnectError.from(reason).code);
      // While the first quarter is under way, in its second half.
      patience.abort();
    },
  }));
  await expect(runBatch(session, taken, patience.signal)).resolves.toEqual([
    true,
    ...Array.from({ length: 7 }, () => false),
  ]);
  await session.close();
  expect(told.get(1n)).toBe(true);
  expect(told.get(2n)).toBe(Code.FailedPrecondition);
  expect([3n, 4n, 5n, 6n, 7n, 8n].map((id) => told.get(id))).toEqual(Array(6).fill(Code.Unavailable));
  expect(await runSql(url, "SELECT plant_id FROM deletions")).toEqual([{ plant_id: "1" }]);
  expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "7" }]);
});
