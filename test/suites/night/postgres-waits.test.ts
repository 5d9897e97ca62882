import { Code } from "@connectrpc/connect";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPlantStore } from "../../../src/stores/index.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { retryTransientErrors, Session } from "../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { createPlantsFor, createSchemaOfVersion, deleteCall, laterSteps, openClient, type PostgresServer, refusalOf,
  runSql, startPostgres, startPostgresProxy } from "../../support/plants/index.ts";

const timeout = 180_000;
let server: PostgresServer;
beforeAll(async () => void (server = await startPostgres()), timeout);
afterAll(() => server[Symbol.asyncDispose]());

test("a session keeps its connection when an earlier one closes late", { timeout }, async () => {
  const url = await server.createSchema();
  const ways: [client: Socket, upstream: Socket][] = [];
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    ways.push([client, upstream]);
    client.on("data", (data) => upstream.write(data));
    upstream.on("data", (data) => client.write(data));
  });
  await using session = closing(new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder))));
  const [first] = await session.query("SELECT pg_backend_pid()");
  for (const socket of ways.flat()) socket.pause();
  session.discard();
  const before = await session.query("SELECT pg_backend_pid()");
  await runSql(url, `SELECT pg_terminate_backend(${first?.[0]}, 10000)`);
  // The server's response arrives now.
  const [client, upstream] = ways[0] ?? [];
  upstream?.resume();
  await expect.poll(() => client?.closed).toBe(true);
  await expect(session.query("SELECT pg_backend_pid()")).resolves.toEqual(before);
});

test("a command fails after retries with backoff for ten seconds", { timeout }, async () => {
  await using session = closing(new Session(readServerUrl(await server.createSchema())));
  const begunMs = performance.now();
  let attempts = 0;
  const refused = retryTransientErrors(session, async () => {
    attempts++;
    await session.run("DO $$ BEGIN RAISE 'again' USING ERRCODE = '40001'; END $$");
  });
  await expect(refused).rejects.toThrow("again");
  expect(performance.now() - begunMs).toBeGreaterThan(9_900);
  // With jittered pauses that double from 5 ms to a second, there are about thirty.
  expect(attempts).toBeLessThan(100);
});

test("a waiting migration reports the lock holder every few seconds", { timeout }, async () => {
  // The next step locks the records.
  const url = await createSchemaOfVersion(server, 1);
  const reader = await openClient(url, "BEGIN; SELECT FROM deletions");
  const toldAtMs: number[] = [];
  const running = migratePostgres(url, () => void toldAtMs.push(performance.now()), laterSteps);
  await expect.poll(() => toldAtMs.length).toBeGreaterThan(1);
  const [first = 0, second = 0] = toldAtMs;
  expect(second - first).toBeGreaterThan(4_000);
  await reader.end();
  await running;
});

test("a migration that waits for another one tries again every second", { timeout }, async () => {
  const url = await createSchemaOfVersion(server, 1);
  const other = await openClient(url, "BEGIN; SELECT FROM plantstore_schema FOR UPDATE");
  const timedOut = (): number => server.log.filter((line) => line.includes("due to lock timeout")).length;
  const before = timedOut();
  const running = migratePostgres(url, undefined, laterSteps);
  await expect.poll(timedOut, { interval: 5 }).toBe(before + 1);
  const firstMs = performance.now();
  await expect.poll(timedOut, { interval: 5 }).toBe(before + 2);
  expect(performance.now() - firstMs).toBeGreaterThan(900);
  await other.end();
  await running;
});

describe("a store", () => {
  test("detects while idle that its server is unavailable, and recovers", { timeout }, async () => {
    const url = await createPlantsFor(server, "lonely", [1n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    await server.stop("fast");
    await expect.poll(() => store.problem).toMatch(/:5432\/postgres: connect /);
    // The store refuses deletions while the server is unavailable.
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.Unavailable });
    expect(refused.metadata.get("retry-after")).toBe("1");
    await server.start();
    await expect.poll(() => store.problem).toBeUndefined();
  });

  test("is unavailable as soon as a call has timed out", { timeout }, async () => {
    const url = await createPlantsFor(server, "prompt", [1n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    await server.stop("fast");
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused.rawMessage).toBe("the plant store cannot process the request at the moment");
    // The store's health checks are less frequent.
    expect(store.problem).toMatch(/:5432\/postgres: connect /);
    await server.start();
  });

  test("opens while its server is unavailable, and checks the schema later", { timeout }, async () => {
    const url = await createPlantsFor(server, "early", [1n]);
    await runSql(url, "UPDATE plantstore_schema SET version = version + 2");
    await server.stop("fast");
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    expect(store.problem).toMatch(/:5432\/postgres: connect /);
    expect(await refusalOf(store.delete(1n, deleteCall()))).toMatchObject({ code: Code.Unavailable });
    await server.start();
    await expect.poll(() => store.problem).toMatch(/: use a newer release$/);
    await runSql(url, "UPDATE plantstore_schema SET version = version - 2");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });

  test("is unavailable while its schema is too new, and then recovers", { timeout }, async () => {
    const url = await createPlantsFor(server, "migrated", [1n]);
    const store = await openPlantStore({ kind: "postgres", url });
    await runSql(url, "UPDATE plantstore_schema SET version = version + 2");
    await expect.poll(() => store.problem).toMatch(/: use a newer release$/);
    const want = { rawMessage: "the plant store cannot process the request at the moment" };
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject(want);
    await runSql(url, "UPDATE plantstore_schema SET version = version - 2");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    // The closed store runs no more health checks. The two stores that are opened now detect the recovery themselves.
    const tester = url.replace("user=migrated", "user=tester");
    for (let others = 0; others < 2; others++) {
      await runSql(tester, "ALTER ROLE migrated SET default_transaction_read_only = on");
      await using other = closing(await openPlantStore({ kind: "postgres", url }));
      expect(other.problem).toMatch(/: the server is read-only: default_transaction_read_only is set by ALTER ROLE$/);
      await runSql(tester, "ALTER ROLE migrated RESET default_transaction_read_only");
      await expect.poll(() => other.problem).toBeUndefined();
    }
    expect(store.problem).toMatch(/: the store is closed$/);
  });

  test("checks on a new connection whether a read-only server is writable", { timeout }, async () => {
    const url = await createPlantsFor(server, "demoted", [1n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    await store.delete(9n, deleteCall());
    await runSql(url, "ALTER ROLE demoted SET default_transaction_read_only = on");
    await runSql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plantstore'");
    await expect
      .poll(() => store.problem)
      .toMatch(/: the server is read-only: default_transaction_read_only is set by ALTER ROLE$/);
    await runSql(url.replace("user=demoted", "user=tester"), "ALTER ROLE demoted RESET default_transaction_read_only");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });

  test("is checked on another connection while two batches wait for a lock", { timeout }, async () => {
    const url = await createPlantsFor(server, "busy", [1n, 2n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    const locking = await openClient(url, "BEGIN; LOCK TABLE plants IN SHARE MODE");
    const outcomes = [1n, 2n].map((id) => store.delete(id, deleteCall()));
    // The check comes after at most five seconds, on a separate connection. The batches fail after ten.
    const connections = `SELECT count(*) FILTER (WHERE query LIKE 'BEGIN;%') AS looks, count(*) AS all
        FROM pg_stat_activity WHERE application_name = 'plantstore'`;
    await expect.poll(() => runSql(url, connections)).toEqual([{ looks: "1", all: "3" }]);
    expect(store.problem).toBeUndefined();
    await locking.end();
    await expect(Promise.all(outcomes)).resolves.toEqual([true, true]);
    expect(store.problem).toBeUndefined();
  });

  test("delays calls while its server restarts, and fails none", { timeout }, async () => {
    const url = await createPlantsFor(server, "patient", [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    await server.stop("fast");
    const outcomes: Promise<boolean>[] = [];
    // Longer than the check interval.
    for (let id = 1n; id <= 7n; id++) {
      outcomes.push(store.delete(id, deleteCall()));
      await sleep(1_000);
      expect(store.problem).toBeUndefined();
    }
    await server.start();
    await expect(Promise.all(outcomes)).resolves.toEqual(outcomes.map(() => true));
    expect(store.problem).toBeUndefined();
  });
});
