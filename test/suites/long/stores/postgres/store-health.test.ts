import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { singleServer } from "../../../../../src/stores/postgres/delete/store-tables.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { countAttempts, createPlantsFor, deleteCall, failAlways, failAttempts, keepingSql, openStoreWith, refusalOf,
  runSql, schemaOf, startPostgresOfFile, startPostgresProxy, withoutStandby
} from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

describe("a PostgreSQL store", () => {
  test.each([
    { name: "stays healthy if another batch deletes a plant", other: 2n, isHealthy: true },
    { name: "is unhealthy if other batches find only missing plants", other: 9n, isHealthy: false },
  ])(
    "$name while one fails for ten seconds",
    async ({ other, isHealthy }) => {
      await using opened = await openStoreWith(server, [1n, 2n]);
      await failAttempts(opened.url, "DELETE ON plants", Array<string>(1_000).fill("40003"), 1n);
      const refused = refusalOf(opened.store.delete(1n, deleteCall()));
      await expect.poll(() => countAttempts(opened.url)).toBeGreaterThan(0);
      await expect(opened.store.delete(other, deleteCall())).resolves.toBe(isHealthy);
      expect((await refused).rawMessage).toBe("the outcome of the deletion is unknown; repeating the request is safe");
      expect(opened.store.problem === undefined).toBe(isHealthy);
    },
    30_000,
  );

  test("is unhealthy if the server refuses the user while a batch succeeds", async () => {
    const url = await createPlantsFor(server, "gardener", [1n, 5n]);
    const sql = `CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       ${keepingSql("WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.02); END LOOP")}`;
    await runSql(url, sql);
    const owner = url.replace("user=gardener", "user=tester");
    let connected = Promise.resolve();
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      void connected.then(() => client.pipe(upstream).pipe(client));
    });
    await using store = closing(await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) }));
    const deleted = store.delete(5n, deleteCall());
    const sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND usename = 'gardener'";
    await expect.poll(() => runSql(owner, sleeping)).not.toEqual([]);
    const gate = Promise.withResolvers<void>();
    connected = gate.promise;
    const refused = refusalOf(store.delete(1n, deleteCall()));
    await runSql(owner, "ALTER ROLE gardener NOLOGIN");
    await runSql(owner, "DELETE FROM gate");
    await expect(deleted).resolves.toBe(true);
    gate.resolve();
    expect((await refused).code).toBe(Code.Unavailable);
    expect(store.problem).toContain("gardener");
  });

  test("waits for a read-only server, at its start and later", async () => {
    await using opened = await openStoreWith(server, [1n]);
    await runSql(opened.url, "CREATE ROLE writer LOGIN SUPERUSER");
    const url = opened.url.replace("user=tester", "user=writer");
    await using store = closing(await openPostgresStore({ url }));
    await store.delete(9n, deleteCall());
    await runSql(opened.url, "ALTER ROLE writer SET default_transaction_read_only = on");
    await runSql(opened.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'");
    const outcome = store.delete(1n, deleteCall());
    await using other = closing(await openPostgresStore({ url }));
    expect(other.problem).toMatch(/: the server is read-only: default_transaction_read_only is set by ALTER ROLE$/);
    await expect(other.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await runSql(opened.url, "ALTER ROLE writer RESET default_transaction_read_only");
    await expect(outcome).resolves.toBe(true);
    await expect.poll(() => other.problem).toBeUndefined();
  });

  test.each([
    ["a healthy database", true, undefined, undefined, undefined],
    ["a database with a failing trigger", true, "P0001", undefined, undefined],
    ["a database on a full disk", false, "53100", undefined, undefined],
    ["a database with a read-only table", false, "25006", undefined, undefined],
    ["a read-only database", false, undefined, "%20-cdefault_transaction_read_only%3Don", "25006"],
  ])("leaves %s unchanged after a write check", async (_name, isHealthy, sqlState, options = "", fails = sqlState) => {
    const url = await server.createPlants([0n]);
    if (sqlState !== undefined) await failAlways(url, "INSERT ON deletions", sqlState);
    const session = new Session(readServerUrl(`${url}${options}`));
    const checked = singleServer(schemaOf(session)).checkWrite(session);
    if (isHealthy) await checked;
    else await expect(checked).rejects.toMatchObject({ code: fails });
    // The session closes its connection after a failed transaction.
    expect(session.processId === undefined).toBe(!isHealthy || sqlState !== undefined);
    // On a healthy server, the next query succeeds, and finds the plant.
    if (isHealthy) await expect(session.query("SELECT id FROM plants")).resolves.toEqual([["0"]]);
    await session.close();
    expect(await runSql(url, "SELECT FROM deletions")).toEqual([]);
  });

  test("runs health checks and deletions without blocking each other", async () => {
    const url = await server.createPlants([0n]);
    const open = (): Session => new Session(readServerUrl(`${url}&application_name=looks`));
    const [first, second, third] = [open(), open(), open()];
    const { results } = await withoutStandby(url, async () => {
      const untold = [
        singleServer(schemaOf(first)).checkWrite(first),
        singleServer(schemaOf(second)).checkWrite(second),
        third.run("DELETE FROM plants WHERE id = 0"),
      ];
      const waiting = "SELECT wait_event FROM pg_stat_activity WHERE application_name = 'looks' AND state = 'active'";
      // Both transactions have reached their commit.
      await expect.poll(() => runSql(url, waiting)).toEqual(untold.map(() => ({ wait_event: "SyncRep" })));
      return { results: Promise.all(untold) };
    });
    await results;
    for (const session of [first, second, third]) await session.close();
  });

  test("stays ready while checks fail for less than ten seconds", async () => {
    const url = await server.createPlants([1n]);
    let [isRefusing, refusals] = [false, 0];
    const clients = new Set<Socket>();
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      clients.add(client);
      if (isRefusing && ++refusals > 0) client.destroy();
      else client.pipe(upstream).pipe(client);
    });
    await using store = closing(await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) }));
    const refuse = (refuses: boolean): void => {
      [isRefusing, refusals] = [refuses, 0];
      if (refuses) for (const client of clients) client.destroy();
    };
    refuse(true);
    // A check is repeated every second.
    await expect.poll(() => refusals).toBe(3);
    expect(store.problem).toBeUndefined();
    refuse(false);
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    refuse(true);
    await expect.poll(() => store.problem).toBeDefined();
    expect(refusals).toBeGreaterThan(3);
    refuse(false);
    await expect.poll(() => store.problem).toBeUndefined();
  }, 60_000);

  test("stays ready while checks fail but deletions succeed", async () => {
    const ids = Array.from({ length: 160 }, (_, i) => BigInt(i + 1));
    const url = await server.createPlants(ids);
    let [isRefusing, refusals] = [false, 0];
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      client.on("data", (data: Buffer) => {
        // A part of the check's first statement.
        if (isRefusing && data.includes("pg_rewrite") && ++refusals > 0) client.destroy();
        else upstream.write(data);
      });
      upstream.pipe(client);
    });
    await using store = closing(await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) }));
    isRefusing = true;
    // Longer than a check's interval and the ten seconds for which a check is repeated.
    for (const id of ids) {
      await expect(store.delete(id, deleteCall())).resolves.toBe(true);
      await delay(100);
      expect(store.problem).toBeUndefined();
    }
    expect(refusals).toBeGreaterThan(0);
  }, 60_000);

  test("checks on new connections whether a server became writable", async () => {
    const url = await server.createPlants([1n]);
    await runSql(url, "CREATE ROLE demoted LOGIN SUPERUSER; ALTER ROLE demoted SET default_transaction_read_only = on");
    let connections = 0;
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      connections++;
      client.pipe(upstream).pipe(client);
    });
    const throughProxy = url.replace(server.socketFolder, proxy.socketFolder).replace("user=tester", "user=demoted");
    await using store = closing(await openPostgresStore({ url: throughProxy }));
    // One connection opened the store, one is for retention, and each check opens another.
    await expect.poll(() => connections).toBeGreaterThan(3);
    await runSql(url, "ALTER ROLE demoted RESET default_transaction_read_only");
    await expect.poll(() => store.problem).toBeUndefined();
  });
});
