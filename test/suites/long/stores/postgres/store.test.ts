import { Code, ConnectError } from "@connectrpc/connect";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { cancelWaitsForStandby, configOf, deleteCall, failAttempts, keepingSql, openClient, openStoreWith, refusalOf,
  runSql, startCuttingProxy, startPostgresOfFile, withoutStandby } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

describe("a PostgreSQL store", () => {
  test("resolves exactly one of many concurrent deletions with true", async () => {
    const ids = Array.from({ length: 500 }, (_, i) => BigInt(i));
    await using opened = await openStoreWith(server, ids);
    const others = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url: opened.url })));
    const results = await Promise.all(
      [opened.store, ...others].map((store) => Promise.all(ids.map((id) => store.delete(id, deleteCall())))),
    );
    for (const id of ids) expect(results.map((outcomes) => outcomes[Number(id)]).filter(Boolean)).toHaveLength(1);
    await Promise.all(others.map((store) => store.close()));
  });

  test("reports how many connections are used and idle", async () => {
    await using opened = await openStoreWith(server, [1n]);
    const keeper = await openClient(opened.url, "BEGIN; LOCK TABLE plants");
    const deleted = opened.store.delete(1n, deleteCall());
    await expect.poll(() => opened.store.connections).toMatchObject({ used: 1 });
    await keeper.query("COMMIT");
    expect(await deleted).toBe(true);
    await expect.poll(() => opened.store.connections).toMatchObject({ used: 0 });
    expect(opened.store.connections?.idle).toBeGreaterThan(0);
    await keeper.end();
  });

  test("records who deleted which plant", async () => {
    await using opened = await openStoreWith(server, [1n, 2n]);
    await opened.store.delete(1n, deleteCall({ subject: 'a"n\\n,{}\0', requestId: "r-1" }));
    const rows = await runSql(opened.url, "SELECT * FROM deletions");
    expect(rows).toMatchObject([{ plant_id: "1", subject: 'a"n\\n,{}\uFFFD', request_id: "r-1" }]);
  });

  test.each([
    ["before the statement is sent", "before-send"],
    ["after the statement is sent", "after-send"],
    ["before the reply arrives", "before-reply"],
  ] as const)("if the connection is cut %s, resolves deletions with their outcome", async (_, cut) => {
    await using opened = await openStoreWith(server, [1n, 2n, 3n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    const wasCut = proxy.cutNext(cut);
    const results = [1n, 2n, 9n].map((id) => store.delete(id, deleteCall({ requestId: `request-${id}` })));
    await wasCut;
    await expect(Promise.all(results)).resolves.toEqual([true, true, false]);
    expect(proxy.cuts).toBe(1);
    expect(await opened.plants()).toEqual([3n]);
    // There is one record per plant, so the retry has deleted nothing twice.
    expect(await runSql(opened.url, "SELECT plant_id, request_id FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1", request_id: "request-1" },
      { plant_id: "2", request_id: "request-2" },
    ]);
    expect(store.problem).toBeUndefined();
    await store.close();
  });

  test("resolves locked and protected deletions with their outcome after a cut", async () => {
    await using opened = await openStoreWith(server, [1n, 2n, 3n, 6n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await runSql(opened.url, "CREATE TABLE beds (plant bigint REFERENCES plants); INSERT INTO beds VALUES (3)");
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    const other = new Client(configOf(opened.url));
    other.on("error", () => undefined);
    await other.connect();
    await other.query("BEGIN; SELECT FROM plants WHERE id = 2 FOR UPDATE");
    const wasCut = proxy.cutNext("after-send", [1n, 2n, 3n, 6n]);
    // The first two deletions run as separate batches, and the others are queued.
    for (const id of [7n, 8n]) void store.delete(id, deleteCall());
    const results = [1n, 2n, 3n, 2n, 6n].map((id) =>
      store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    await wasCut;
    await expect(Promise.all(results)).resolves.toEqual([
      true,
      // The lost attempt may still be running.
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the database does not allow deleting plant 3",
      // The other deletion was retried.
      "the plant store cannot process the request at the moment",
      true,
    ]);
    expect(await opened.plants()).toEqual([2n, 3n]);
    expect(store.problem).toBeUndefined();
    await store.close();
    await other.end();
  });

  /** Deletes a plant, for which the first attempt is lost but continues. Returns the outcome. */
  async function tellOfLostAttempt(): Promise<unknown> {
    await using opened = await openStoreWith(server, [1n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    // The first statement keeps the plant locked despite cancel requests, until the test lets it continue.
    const sql = `CREATE SEQUENCE statements;
       CREATE FUNCTION go_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('statements') > 1 THEN RETURN NULL; END IF;
         LOOP
           BEGIN
             PERFORM pg_advisory_lock(1);
             RETURN NULL;
           EXCEPTION WHEN query_canceled OR lock_not_available THEN
           END;
         END LOOP;
       END $$;
       CREATE TRIGGER go_on AFTER DELETE ON plants EXECUTE FUNCTION go_on()`;
    await runSql(opened.url, sql);
    const other = await openClient(opened.url, "SELECT pg_advisory_lock(1)");
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    let isTold = false;
    const results = store
      .delete(1n, deleteCall())
      .catch((fault: unknown) => ConnectError.from(fault).rawMessage)
      .finally(() => (isTold = true));
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'";
    await expect.poll(() => runSql(opened.url, waiting)).toHaveLength(1);
    for (const socket of proxy.sockets) socket.destroy();
    await expect.poll(() => isTold || store.waiting?.forLock === 1).toBe(true);
    await other.end();
    await expect.poll(() => opened.plants()).toEqual([]);
    await store.close();
    return await results;
  }

  test("resolves with true when a lost attempt deletes the plant later", async () => {
    // If the machine stalls for long, the outcome is unknown, and the test is repeated.
    const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
    let results: unknown = unknown;
    for (let rounds = 0; results === unknown && rounds < 5; rounds++) results = await tellOfLostAttempt();
    expect(results).toBe(true);
  });

  test("closes although its server does not respond", async () => {
    await using opened = await openStoreWith(server, [1n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    proxy.freeze();
    await store.close();
  });

  test("reports an unknown outcome after an internal error", async () => {
    await using opened = await openStoreWith(server, [1n]);
    await failAttempts(opened.url, "DELETE ON plants", ["40001"]);
    let reads = 0;
    const context = {
      // The queue reads the signal first.
      get signal(): AbortSignal {
        if (reads++ === 0) return new AbortController().signal;
        throw new TypeError("there is no signal");
      },
    };
    const refused = await refusalOf(opened.store.delete(1n, { ...deleteCall(), context }));
    expect(refused).toMatchObject({ code: Code.Unavailable, cause: new TypeError("there is no signal") });
    expect(refused.rawMessage).toBe("the outcome of the deletion is unknown; repeating the request is safe");
    expect(opened.store.problem).toBeUndefined();
  });

  test("drops a cancelled call while the server is down, and retries others", async () => {
    const url = await server.createPlants([1n]);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    await using store = closing(await openPostgresStore({ url, onBatch: () => () => end() }));
    await server.stop("immediate");
    const controller = new AbortController();
    const given = store.delete(1n, deleteCall({ signal: controller.signal }));
    await new Promise(setImmediate);
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(given).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await ended;
    // A cancelled call does not mean that the server has a problem.
    expect(store.problem).toBeUndefined();
    const outcome = store.delete(1n, deleteCall());
    await server.start();
    await expect(outcome).resolves.toBe(true);
  });

  test.each([
    {
      name: "a table is missing",
      sql: "ALTER TABLE deletions RENAME TO gone",
      undo: "ALTER TABLE gone RENAME TO deletions",
    },
  ])("fails immediately when $name, and deletes nothing", async ({ sql, undo }) => {
    await using opened = await openStoreWith(server, [1n]);
    const batches: unknown[] = [];
    const onBatch = (calls: readonly unknown[]) => (error?: unknown) => batches.push(calls.length, error);
    const store = await openPostgresStore({ url: opened.url, onBatch });
    await runSql(opened.url, sql);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toMatch(/relation "plants_\d+\.deletions" does not exist$/);
    // Deletions that are refused after that are not sent as a batch.
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(batches).toEqual([1, expect.any(ConnectError)]);
    await store.close();
    await runSql(opened.url, undo);
    expect(await opened.plants()).toEqual([1n]);
  });

  test.each([
    ["a trigger protects with an unknown SQLSTATE", keepingSql("RAISE 'no' USING ERRCODE = 'PLANT'"), undefined],
    ["has a trigger that lacks a privilege", keepingSql("RAISE 'no' USING ERRCODE = '42501'"), Code.Unavailable],
    ["has a trigger with a missing table", keepingSql("DELETE FROM nowhere"), Code.Unavailable],
  ])("refuses a plant that %s, and deletes other plants", async (_name, sql, code = Code.FailedPrecondition) => {
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    await using opened = await openStoreWith(server, ids);
    await runSql(opened.url, sql);
    const refused = { status: "rejected", reason: expect.objectContaining({ code }) };
    expect(await Promise.allSettled([opened.store.delete(5n, deleteCall())])).toEqual([refused]);
    expect(await Promise.allSettled([...ids, 99n].map((id) => opened.store.delete(id, deleteCall())))).toEqual([
      ...ids.map((id) => (id === 5n || id === 12n ? refused : { status: "fulfilled", value: true })),
      { status: "fulfilled", value: false },
    ]);
    expect(opened.store.problem).toBeUndefined();
    expect(await opened.plants()).toEqual([5n, 12n]);
    expect(await runSql(opened.url, "SELECT count(*) FROM deletions")).toEqual([{ count: "18" }]);
  });
  const options = ["", "%20-cclient_min_messages%3Derror"];
  test.each(options)('with options "%s" acknowledges a deletion only after its standbys have it', async (option) => {
    await using opened = await openStoreWith(server, [1n]);
    await using store = closing(await openPostgresStore({ url: `${opened.url}${option}` }));
    const waiting = (query: string): Promise<unknown> =>
      runSql(opened.url, `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%${query}%'`);
    const results = await withoutStandby(opened.url, async () => {
      await server.stop("fast");
      await server.start();
      const deleting = store.delete(1n, deleteCall());
      await expect.poll(() => waiting("WITH free")).not.toEqual([]);
      await cancelWaitsForStandby(opened.url);
      await expect.poll(() => waiting("AS found")).not.toEqual([]);
      return { deleting };
    });
    await expect(results.deleting).resolves.toBe(true);
    expect(await opened.plants()).toEqual([]);
  });
});
