import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { migratePlants, openPlantStore } from "../../../src/stores/index.ts";
import { batchTimeoutMs } from "../../../src/stores/contract/backend.ts";
import { openPostgresStore, watchIntervalMs } from "../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { createPlantsFor, type CuttingProxy, deleteCall, openClient, type PostgresServer, runSql, startCuttingProxy,
  startPostgres, withoutStandby } from "../../support/plants/index.ts";

const tickMs = 100;
/** A clock that stops while the machine stalls. Dispose it with `using`. */
type RunningClock = Disposable & { elapsedMs(): number };

/** Starts a clock that counts the time in which this process runs, and a machine's pause as a tenth of a second. */
function startRunningClock(): RunningClock {
  let elapsedMs = 0;
  const timer = setInterval(() => (elapsedMs += tickMs), tickMs);
  return { elapsedMs: () => elapsedMs, [Symbol.dispose]: () => clearInterval(timer) };
}

// Tests a reachable server that cannot perform every operation.

const timeout = 180_000;

/** Statements with this prefix that wait for a standby. The store's checks and upkeep wait for it, too. */
const waiting = (sql: string): string =>
  `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '${sql}%'`;

const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
/** The delay that a busy machine may cause, in milliseconds in which it runs. */
const marginMs = 4_000;
/** Runs work during a problem. */
type Situation = (url: string, proxy: CuttingProxy, work: () => Promise<void>) => Promise<void>;

let server: PostgresServer;
beforeAll(async () => void (server = await startPostgres()), timeout);
afterAll(() => server[Symbol.asyncDispose]());

describe("a store", () => {
  // Reads still succeed, and no deletion fails.
  test.each(
    // oxfmt-ignore
    [
      {
        name: "the disk for its records is full",
        sql: `CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$;
              CREATE TRIGGER fill BEFORE INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION fill()`,
        undo: "DROP TRIGGER fill ON deletions",
        problem: /: No space left on device$/,
        // The plant is missing, and reporting that needs no write.
        asked: [9n],
      },
      { name: "its user has lost a privilege", sql: "REVOKE DELETE ON plants FROM idler",
        undo: "GRANT DELETE ON plants TO idler", problem: /: the user lacks privileges: DELETE on plants$/, asked: [] },
    ],
  )("detects with health checks that $name, and recovers", { timeout }, async ({ sql, undo, problem, asked }) => {
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

  test("detects while idle that its table is locked, and recovers", { timeout }, async () => {
    const url = await createPlantsFor(server, "shut", [1n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    const locking = await openClient(url, "BEGIN; LOCK TABLE plants");
    await expect.poll(() => store.problem).toMatch(/: another transaction holds a lock on a table or its rows: /);
    await locking.end();
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });

  // One store gets calls. The other one only runs health checks, at most five seconds apart.
  test.each<{ name: string; during: Situation; message: string; expected: RegExp }>(
    // oxfmt-ignore
    [
      { name: "its synchronous standby is gone", during: (url, _, work) => withoutStandby(url, work), message: unknown,
        expected: /: committed, but not confirmed by its synchronous standbys$/ },
      { name: "its table is locked", during: async (url, _, work) => {
          const locking = await openClient(url, "BEGIN; LOCK TABLE plants");
          try {
            await work();
          } finally {
            await locking.end();
          }
        }, message: "the plant store cannot process the request at the moment",
        expected: /: another transaction holds a lock on a table or its rows: / },
      { name: "the network drops packets", during: async (_, proxy, work) => {
          proxy.freeze();
          await work();
        }, message: unknown, expected: /: (?:the server does not respond, .*|\S+ did not respond in time)$/ },
    ],
  )("if $name, rejects calls within ten seconds and reports the cause", { timeout }, async (row) => {
    const url = await server.createPlants([1n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const stores = await Promise.all(
      [1, 2].map(() => openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) })),
    );
    const [asked, idle] = stores;
    // The store has a connection before the problem.
    await asked?.delete(9n, deleteCall());
    await row.during(url, proxy, async () => {
      using clock = startRunningClock();
      await expect(asked?.delete(1n, deleteCall())).rejects.toMatchObject({ rawMessage: row.message });
      expect(clock.elapsedMs()).toBeLessThan(batchTimeoutMs + marginMs);
      expect(asked?.problem).toMatch(row.expected);
      await expect.poll(() => idle?.problem).toMatch(row.expected);
      expect(clock.elapsedMs()).toBeLessThan(watchIntervalMs + batchTimeoutMs + marginMs);
    });
    await Promise.all(stores.map((store) => store.close()));
  });

  test("is unavailable without its standby, and accumulates no PostgreSQL processes", { timeout }, async () => {
    const url = await createPlantsFor(server, "lone", [1n, 2n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await server.stop("fast");
    await server.start();
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ rawMessage: unknown });
    await expect.poll(() => store.problem).toBeDefined();
    // Checks continue meanwhile, each of which times out waiting for the standby.
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
    // The deletion was committed here, and the standby has it now.
    await expect(store.delete(1n, deleteCall())).resolves.toBe(false);
    await expect(store.delete(2n, deleteCall())).resolves.toBe(true);
  });

  test("reports a plant as missing only after the standby has its deletion", { timeout }, async () => {
    const url = await server.createPlants([1n]);
    await using store = closing(await openPlantStore({ kind: "postgres", url }));
    let isTold = false;
    const outcome = await withoutStandby(url, async () => {
      // A deletion is not visible until its wait is cancelled. A failover would then undo the deletion.
      const undoing = "DELETE FROM plants WHERE id = 1";
      const undone = runSql(url, undoing);
      await expect.poll(() => runSql(url, waiting(undoing))).toHaveLength(1);
      await runSql(url, `SELECT pg_cancel_backend(pid) FROM (${waiting(undoing)}) AS waiting`);
      await undone;
      const outcomes = store.delete(1n, deleteCall()).finally(() => (isTold = true));
      await expect.poll(() => runSql(url, waiting("%AS found%"))).toHaveLength(1);
      expect(isTold).toBe(false);
      return { outcomes };
    });
    await expect(outcome.outcomes).resolves.toBe(false);
  });
});
