import { mkdirSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migratePlants, openPlantStore } from "../../src/plantstore/plants/index.ts";
import { repeatWhileRefused } from "../../src/plantstore/plants/postgres/server/repeat-while-refused.ts";
import { batchTimeoutMs } from "../../src/plantstore/plants/postgres/delete/run-batch.ts";
import { readServerUrl } from "../../src/plantstore/plants/postgres/server/server-url.ts";
import { migrations } from "../../src/plantstore/plants/postgres/schema/migrations.ts";
import { Session } from "../../src/plantstore/plants/postgres/server/session.ts";
import { openPostgresStore, watchIntervalMs } from "../../src/plantstore/plants/postgres/store.ts";
import { type CuttingProxy, startCuttingProxy } from "../support/plants/cutting-proxy.ts";
import { deleteCall } from "../support/plants/delete-call.ts";
import { startPostgresProxy } from "../support/plants/postgres-proxy.ts";
import {
  configOf,
  type PostgresServer,
  runSql,
  startPostgres,
  withoutStandby,
} from "../support/plants/postgres-server.ts";
import { refusalOf } from "../support/plants/refusal.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

const timeout = 180_000;

const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

/** How much later than said a busy machine may be, in milliseconds. */
const marginMs = 1_000;

/** Does work while something is wrong. */
type Situation = (url: string, proxy: CuttingProxy, work: () => Promise<void>) => Promise<void>;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, timeout);
afterAll(() => server[Symbol.asyncDispose]());

/** The URL of a new store with these plants, for a role of its own. */
async function createPlants(role: string, ids: readonly number[]): Promise<string> {
  const url = await server.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(
    url,
    `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[]); CREATE ROLE ${role} LOGIN SUPERUSER`,
  );
  return url.replace("user=tester", `user=${role}`);
}

describe("a session", () => {
  test.each([
    { name: "takes connections and says nothing", passesOn: (): boolean => false },
    {
      name: "says nothing once it is asked whether it can be written",
      passesOn: (data: Buffer): boolean => !data.includes("transaction_read_only"),
    },
  ])("goes on to the next host where one $name", { timeout }, async ({ passesOn }) => {
    using folder = createTempFolder();
    mkdirSync(folder.file("silent"));
    const proxy = createServer((client) => {
      const upstream = connect(join(server.socketFolder, ".s.PGSQL.5432"));
      client.on("data", (data: Buffer) => passesOn(data) && upstream.write(data));
      // The end of a server that has waited in vain is not passed on.
      upstream.on("data", (data) => client.write(data));
      client.on("error", () => undefined);
      client.on("close", () => upstream.destroy());
    });
    proxy.listen(join(folder.file("silent"), ".s.PGSQL.5432"));
    await once(proxy, "listening");
    const url = await server.createSchema();
    const hosts = `${folder.file("silent")},${server.socketFolder}`;
    const session = new Session(readServerUrl(url.replace(server.socketFolder, hosts)));
    await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
    await session.close();
    proxy.close();
    await once(proxy, "close");
  });
});

test("a session keeps its connection when the server ends late one that it has released", { timeout }, async () => {
  const url = await server.createSchema();
  const ways: [client: Socket, upstream: Socket][] = [];
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    ways.push([client, upstream]);
    client.on("data", (data) => upstream.write(data));
    upstream.on("data", (data) => client.write(data));
  });
  const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
  const [first] = await session.query("SELECT pg_backend_pid()");
  for (const socket of ways.flat()) socket.pause();
  session.discard();
  const before = await session.query("SELECT pg_backend_pid()");
  await runSql(url, `SELECT pg_terminate_backend(${first?.[0]}, 10000)`);
  // What the server has said about it arrives now.
  const [client, upstream] = ways[0] ?? [];
  upstream?.resume();
  await expect.poll(() => client?.closed).toBe(true);
  await expect(session.query("SELECT pg_backend_pid()")).resolves.toEqual(before);
  await session.close();
});

test(
  "what an operator asks for is refused for good after ten seconds, and is no storm meanwhile",
  { timeout },
  async () => {
    const session = new Session(readServerUrl(await server.createSchema()));
    const begunMs = performance.now();
    let tries = 0;
    const refused = repeatWhileRefused(session, async () => {
      tries++;
      await session.run("DO $$ BEGIN RAISE 'again' USING ERRCODE = '40001'; END $$");
    });
    await expect(refused).rejects.toThrow("again");
    expect(performance.now() - begunMs).toBeGreaterThan(9_900);
    // With pauses that double from 5 ms to a second, each for a random part of it, there are thirty or so.
    expect(tries).toBeLessThan(100);
    await session.close();
  },
);

test("a migration says what it waits for, and again every few seconds", { timeout }, async () => {
  const url = await server.createSchema();
  // The next step locks the records.
  for (const { sql } of migrations.slice(0, 2)) await runSql(url, sql);
  await runSql(url, "UPDATE plantstore_schema SET version = 2");
  const reader = new Client(configOf(url));
  await reader.connect();
  await reader.query("BEGIN; SELECT FROM deletions");
  const toldAtMs: number[] = [];
  const running = migratePlants({ kind: "postgres", url }, () => void toldAtMs.push(performance.now()));
  await expect.poll(() => toldAtMs.length).toBeGreaterThan(1);
  const [first = 0, second = 0] = toldAtMs;
  expect(second - first).toBeGreaterThan(4_000);
  await reader.end();
  await running;
});

test("a migration that waits for another one goes on looking, at most ten times a second", { timeout }, async () => {
  const url = await server.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(url, "UPDATE plantstore_schema SET version = version - 1");
  const other = new Client(configOf(url));
  await other.connect();
  await other.query("BEGIN; SELECT FROM plantstore_schema FOR UPDATE");
  const connectedAtMs: number[] = [];
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    connectedAtMs.push(performance.now());
    client.pipe(upstream).pipe(client);
  });
  const running = migratePlants({ kind: "postgres", url: url.replace(server.socketFolder, proxy.socketFolder) });
  // One to work on, and one for each look.
  await expect.poll(() => connectedAtMs.length).toBeGreaterThan(5);
  expect((connectedAtMs[5] ?? 0) - (connectedAtMs[1] ?? 0)).toBeGreaterThan(4 * 99);
  await other.end();
  await running;
});

describe("a store", () => {
  test("learns that its server is gone without a caller, and that it is back", { timeout }, async () => {
    const url = await createPlants("lonely", [1]);
    const store = await openPlantStore({ kind: "postgres", url });
    await server.stop("fast");
    await expect.poll(() => store.problem).toMatch(/:5432\/postgres: connect /);
    // Nothing is taken that could not be done.
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.Unavailable });
    expect(refused.metadata.get("retry-after")).toBe("1");
    await server.start();
    await expect.poll(() => store.problem).toBeUndefined();
    await store.close();
  });

  test("is away as soon as a caller has waited for it in vain", { timeout }, async () => {
    const url = await createPlants("prompt", [1]);
    const store = await openPlantStore({ kind: "postgres", url });
    await server.stop("fast");
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused.rawMessage).toBe("the plant store cannot delete at the moment");
    // It has not looked by itself for as long.
    expect(store.problem).toMatch(/:5432\/postgres: connect /);
    await server.start();
    await store.close();
  });

  test("waits for a server that is away when it is opened, and looks at its schema then", { timeout }, async () => {
    const url = await createPlants("early", [1]);
    await runSql(url, "UPDATE plantstore_schema SET version = version + 1");
    await server.stop("fast");
    const store = await openPlantStore({ kind: "postgres", url });
    expect(store.problem).toMatch(/:5432\/postgres: connect /);
    expect(await refusalOf(store.delete(1n, deleteCall()))).toMatchObject({ code: Code.Unavailable });
    await server.start();
    await expect.poll(() => store.problem).toMatch(/: it needs a newer release$/);
    await runSql(url, "UPDATE plantstore_schema SET version = version - 1");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
  });

  test("is away while its schema is another release's, and back with it", { timeout }, async () => {
    const url = await createPlants("migrated", [1]);
    const store = await openPlantStore({ kind: "postgres", url });
    await runSql(url, "UPDATE plantstore_schema SET version = version + 1");
    await expect.poll(() => store.problem).toMatch(/: it needs a newer release$/);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({
      rawMessage: "the plant store cannot delete at the moment",
    });
    await runSql(url, "UPDATE plantstore_schema SET version = version - 1");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    // It looks no more: others, which do so from now on, find a server that has come back, the second one a second later.
    const tester = url.replace("user=migrated", "user=tester");
    for (let others = 0; others < 2; others++) {
      await runSql(tester, "ALTER ROLE migrated SET default_transaction_read_only = on");
      const other = await openPlantStore({ kind: "postgres", url });
      expect(other.problem).toMatch(/: the server is read-only$/);
      await runSql(tester, "ALTER ROLE migrated RESET default_transaction_read_only");
      await expect.poll(() => other.problem).toBeUndefined();
      await other.close();
    }
    expect(store.problem).toMatch(/: the store is closed$/);
  });

  test("looks on a new connection whether a server that was read-only can be written", { timeout }, async () => {
    const url = await createPlants("demoted", [1]);
    const store = await openPlantStore({ kind: "postgres", url });
    await store.delete(9n, deleteCall());
    await runSql(url, "ALTER ROLE demoted SET default_transaction_read_only = on");
    await runSql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plantstore'");
    await expect.poll(() => store.problem).toMatch(/: the server is read-only$/);
    const tester = url.replace("user=demoted", "user=tester");
    await runSql(tester, "ALTER ROLE demoted RESET default_transaction_read_only");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
  });

  test(
    "is asked how it is beside two batches that wait, whose callers get what they asked for",
    { timeout },
    async () => {
      const url = await createPlants("busy", [1, 2]);
      const store = await openPlantStore({ kind: "postgres", url });
      const locking = new Client(configOf(url));
      await locking.connect();
      await locking.query("BEGIN; LOCK TABLE plants IN SHARE MODE");
      const outcomes = [1n, 2n].map((id) => store.delete(id, deleteCall()));
      // The look comes after five seconds at most, on a connection of its own; the batches are given up after ten.
      const connections = `SELECT count(*) FILTER (WHERE query LIKE '%probe%') AS looks, count(*) AS all
        FROM pg_stat_activity WHERE application_name = 'plantstore'`;
      await expect.poll(() => runSql(url, connections)).toEqual([{ looks: "1", all: "3" }]);
      expect(store.problem).toBeUndefined();
      await locking.end();
      await expect(Promise.all(outcomes)).resolves.toEqual([true, true]);
      expect(store.problem).toBeUndefined();
      await store.close();
    },
  );

  test("costs its callers time and nothing else while its server is away for some seconds", { timeout }, async () => {
    const url = await createPlants("patient", [1, 2, 3, 4, 5, 6, 7, 8]);
    const store = await openPlantStore({ kind: "postgres", url });
    await server.stop("fast");
    const outcomes: Promise<boolean>[] = [];
    // Longer than the time between two looks.
    for (let id = 1n; id <= 7n; id++) {
      outcomes.push(store.delete(id, deleteCall()));
      await sleep(1_000);
      expect(store.problem).toBeUndefined();
    }
    await server.start();
    await expect(Promise.all(outcomes)).resolves.toEqual(outcomes.map(() => true));
    expect(store.problem).toBeUndefined();
    await store.close();
  });

  // Reads go on as if nothing were wrong, and nobody deletes anything.
  test.each([
    {
      name: "the disk for its records is full",
      sql: `CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER fill BEFORE INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION fill()`,
      undo: "DROP TRIGGER fill ON deletions",
      problem: /: No space left on device$/,
      // It is not there, and to say so needs no write.
      asked: [9n],
    },
    {
      name: "its user has lost a right",
      sql: "REVOKE DELETE ON plants FROM idler",
      undo: "GRANT DELETE ON plants TO idler",
      problem: /: the user lacks DELETE on plants$/,
      asked: [],
    },
  ])("learns without a caller that $name, and that it is over", { timeout }, async ({ sql, undo, problem, asked }) => {
    const url = await server.createSchema();
    await migratePlants({ kind: "postgres", url });
    const schema = /plants_\d+/.exec(url)?.[0];
    await runSql(url, "DROP ROLE IF EXISTS idler; CREATE ROLE idler LOGIN");
    await runSql(url, `GRANT USAGE ON SCHEMA ${schema} TO idler; GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO idler`);
    await runSql(url, "INSERT INTO plants VALUES (1)");
    const store = await openPlantStore({ kind: "postgres", url: url.replace("user=tester", "user=idler") });
    await runSql(url, sql);
    const problemAfterAsking = async (): Promise<string | undefined> => {
      for (const id of asked) await store.delete(id, deleteCall()).catch(() => undefined);
      return store.problem;
    };
    await expect.poll(problemAfterAsking).toMatch(problem);
    await runSql(url, undo);
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    await runSql(url, "DROP OWNED BY idler; DROP ROLE idler");
  });

  test("learns without a caller that its table is locked, and that it is over", { timeout }, async () => {
    const url = await createPlants("shut", [1]);
    const store = await openPlantStore({ kind: "postgres", url });
    const locking = new Client(configOf(url));
    await locking.connect();
    await locking.query("BEGIN; LOCK TABLE plants");
    await expect.poll(() => store.problem).toMatch(/: another transaction keeps a table or its rows locked: /);
    await locking.end();
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
  });

  // One is asked, and one only looks by itself, after five seconds at most.
  test.each<{ name: string; during: Situation; message: string; says: RegExp }>([
    {
      name: "its synchronous standby is gone",
      during: (url, _, work) => withoutStandby(url, work),
      message: unknown,
      says: /: committed, but not confirmed by its synchronous standbys$/,
    },
    {
      name: "its table is locked",
      during: async (url, _, work) => {
        const locking = new Client(configOf(url));
        await locking.connect();
        await locking.query("BEGIN; LOCK TABLE plants");
        try {
          await work();
        } finally {
          await locking.end();
        }
      },
      message: "the plant store cannot delete at the moment",
      says: /: another transaction keeps a table or its rows locked: /,
    },
    {
      name: "the network is silent",
      during: async (_, proxy, work) => {
        proxy.freeze();
        await work();
      },
      message: unknown,
      says: /: (?:the server is silent: .*|\S+ does not answer)$/,
    },
  ])(
    "tells its callers within ten seconds, and an operator what it waits for, when $name",
    { timeout },
    async (row) => {
      const url = await server.createPlants([1n]);
      await using proxy = await startCuttingProxy(server.socketFolder);
      const stores = await Promise.all(
        [1, 2].map(() => openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) })),
      );
      const [asked, idle] = stores;
      // It has a connection before anything is wrong.
      await asked?.delete(9n, deleteCall());
      await row.during(url, proxy, async () => {
        const begunMs = performance.now();
        const lastedMs = (): number => performance.now() - begunMs;
        await expect(asked?.delete(1n, deleteCall())).rejects.toMatchObject({ rawMessage: row.message });
        expect(lastedMs()).toBeLessThan(batchTimeoutMs + marginMs);
        expect(asked?.problem).toMatch(row.says);
        await expect.poll(() => idle?.problem).toMatch(row.says);
        expect(lastedMs()).toBeLessThan(watchIntervalMs + batchTimeoutMs + marginMs);
      });
      await Promise.all(stores.map((store) => store.close()));
    },
  );

  test("is away, and leaves no backend behind, while its synchronous standby is gone", { timeout }, async () => {
    const url = await createPlants("lone", [1, 2]);
    const store = await openPlantStore({ kind: "postgres", url });
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await server.stop("fast");
    await server.start();
    const outcome = store.delete(1n, deleteCall());
    await expect(outcome).rejects.toMatchObject({ rawMessage: unknown });
    await expect.poll(() => store.problem).toBeDefined();
    // Looks go on meanwhile, each of which waits for the standby in vain.
    const looks: string[] = [];
    while (looks.length < 3) {
      const running = await runSql(url, "SELECT pid FROM pg_stat_activity WHERE usename = 'lone'");
      expect(running.length).toBeLessThanOrEqual(4);
      for (const { pid } of running) if (!looks.includes(String(pid))) looks.push(String(pid));
      await sleep(100);
    }
    expect(store.problem).toBeDefined();
    await runSql(url, "ALTER SYSTEM RESET synchronous_standby_names");
    await runSql(url, "SELECT pg_reload_conf()");
    await expect.poll(() => store.problem).toBeUndefined();
    // It was committed here, and the standby has it now.
    await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
    await store.close();
  });

  test("says that a plant is gone only when its synchronous standby knows it", { timeout }, async () => {
    const url = await createPlants("asker", [1, 2]);
    const store = await openPlantStore({ kind: "postgres", url });
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await runSql(url, "SELECT pg_reload_conf()");
    // A deletion that waits is not visible. Once its wait is cancelled it is, and a failover would undo it.
    const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    const undone = runSql(url.replace("user=asker", "user=tester"), "DELETE FROM plants");
    await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
    await runSql(url, `SELECT pg_cancel_backend(pid) FROM (${waiting}) AS waiting`);
    await undone;
    let isTold = false;
    const outcome = store.delete(1n, deleteCall()).finally(() => (isTold = true));
    await expect.poll(() => runSql(url, `${waiting} AND usename = 'asker'`)).toHaveLength(1);
    expect(isTold).toBe(false);
    await runSql(url, "ALTER SYSTEM RESET synchronous_standby_names");
    await runSql(url, "SELECT pg_reload_conf()");
    await expect(outcome).resolves.toBe(false);
    await store.close();
  });
});
