import { isDeepStrictEqual } from "node:util";
import { Code, ConnectError } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { oneServer } from "../../../../src/plantstore/plants/postgres/delete/one-server.ts";
import { readServerUrl } from "../../../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../../../src/plantstore/plants/postgres/server/session.ts";
import type { PlantStore } from "../../../../src/plantstore/service/plant-store.ts";
import { openPostgresStore, watchIntervalMs } from "../../../../src/plantstore/plants/postgres/store.ts";
import { startCuttingProxy } from "../../../support/plants/cutting-proxy.ts";
import { deleteCall } from "../../../support/plants/delete-call.ts";
import { describePlantStore } from "../../../support/plants/describe-plant-store.ts";
import { countTries, failAlways, failTries } from "../../../support/plants/failing-tries.ts";
import { startPostgresProxy } from "../../../support/plants/postgres-proxy.ts";
import { refusalOf } from "../../../support/plants/refusal.ts";
import {
  cancelWaitsForStandby,
  configOf,
  createPlantsFor,
  openClient,
  type PostgresServer,
  runSql,
  startPostgres,
  withoutStandby,
} from "../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../support/plants/schema-of.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
// Some tests stop it.
afterEach(() => server.start());
afterAll(() => server[Symbol.asyncDispose]());

async function plantsOf(url: string): Promise<bigint[]> {
  return (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => BigInt(String(id)));
}

/** A database with these plants, and the store of it. */
async function openWith(plants: readonly bigint[]) {
  const url = await server.createPlants(plants);
  const store = await openPostgresStore({ url });
  return { url, store, plants: () => plantsOf(url), [Symbol.asyncDispose]: () => store.close() };
}

/** A trigger that does this for plants 5 and 12. */
function keeping(statement: string): string {
  return `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF OLD.id IN (5, 12) THEN ${statement}; END IF; RETURN OLD; END $$;
          CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`;
}

describePlantStore(openWith);

describe("a PostgreSQL store", () => {
  test("tells exactly one of many processes' deletes of one plant that it deleted it", async () => {
    const ids = Array.from({ length: 500 }, (_, i) => BigInt(i));
    await using opened = await openWith(ids);
    const others = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url: opened.url })));
    const answers = await Promise.all(
      [opened.store, ...others].map((store) => Promise.all(ids.map((id) => store.delete(id, deleteCall())))),
    );
    for (const id of ids) expect(answers.map((outcomes) => outcomes[Number(id)]).filter(Boolean)).toHaveLength(1);
    await Promise.all(others.map((store) => store.close()));
  });

  test("tells how many of its connections are used, and how many are idle", async () => {
    await using opened = await openWith([1n]);
    const keeper = await openClient(opened.url, "BEGIN; LOCK TABLE plants");
    const deleted = opened.store.delete(1n, deleteCall());
    await expect.poll(() => opened.store.connections).toMatchObject({ used: 1 });
    await keeper.query("COMMIT");
    expect(await deleted).toBe(true);
    await expect.poll(() => opened.store.connections).toMatchObject({ used: 0 });
    expect(opened.store.connections?.idle).toBeGreaterThan(0);
    await keeper.end();
  });

  test("has room for all that may wait before the first deletion, and takes none once it is being closed", async () => {
    const url = await server.createPlants([1n]);
    let batches = 0;
    const onBatch = (): (() => void) => {
      batches++;
      return () => undefined;
    };
    const store = await openPostgresStore({ url, onBatch });
    expect(store.waiting).toEqual({ forBatch: 0, forBatchMax: 16_384, forLock: 0 });
    const closed = store.close();
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await closed;
    expect(batches).toBe(0);
  });

  test("records who deleted which plant", async () => {
    await using opened = await openWith([1n, 2n]);
    await opened.store.delete(1n, deleteCall({ subject: 'a"n\\n,{}\0', requestId: "r-1" }));
    const rows = await runSql(opened.url, "SELECT * FROM deletions");
    expect(rows).toMatchObject([{ plant_id: "1", subject: 'a"n\\n,{}\uFFFD', request_id: "r-1" }]);
  });

  test.each(["before-send", "after-send", "before-reply"] as const)(
    "tells the truth about a deletion whose connection was cut %s",
    async (cut) => {
      await using opened = await openWith([1n, 2n, 3n]);
      await using proxy = await startCuttingProxy(server.socketFolder);
      const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
      const wasCut = proxy.cutNext(cut);
      const answers = [1n, 2n, 9n].map((id) => store.delete(id, deleteCall({ requestId: `request-${id}` })));
      await wasCut;
      await expect(Promise.all(answers)).resolves.toEqual([true, true, false]);
      expect(proxy.cuts).toBe(1);
      expect(await opened.plants()).toEqual([3n]);
      // One record for each plant: the retry has deleted nothing twice.
      const rows = await runSql(opened.url, "SELECT plant_id, request_id FROM deletions ORDER BY plant_id");
      expect(rows).toEqual([
        { plant_id: "1", request_id: "request-1" },
        { plant_id: "2", request_id: "request-2" },
      ]);
      expect(store.problem).toBeUndefined();
      await store.close();
    },
  );

  test("tells the truth about a deletion whose connection was cut, beside plants that are locked or kept", async () => {
    await using opened = await openWith([1n, 2n, 3n, 6n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await runSql(opened.url, "CREATE TABLE beds (plant bigint REFERENCES plants); INSERT INTO beds VALUES (3)");
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    const other = new Client(configOf(opened.url));
    other.on("error", () => undefined);
    await other.connect();
    await other.query("BEGIN; SELECT FROM plants WHERE id = 2 FOR UPDATE");
    const wasCut = proxy.cutNext("after-send", [1n, 2n, 3n, 6n]);
    // The first two are batches of their own, and the others wait.
    for (const id of [7n, 8n]) void store.delete(id, deleteCall());
    const answers = [1n, 2n, 3n, 2n, 6n].map((id) =>
      store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    await wasCut;
    await expect(Promise.all(answers)).resolves.toEqual([
      true,
      // Its attempt may be running still, as far as can be known.
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the database keeps plant 3",
      // The other caller has begun anew.
      "the plant store cannot delete at the moment",
      true,
    ]);
    expect(await opened.plants()).toEqual([2n, 3n]);
    expect(store.problem).toBeUndefined();
    await store.close();
    await other.end();
  });

  /** What a caller is told whose attempt was lost, and went on. */
  async function tellOfLostAttempt(): Promise<unknown> {
    await using opened = await openWith([1n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    // The first statement keeps its plant locked until the test lets it go on, whoever cancels it.
    await runSql(
      opened.url,
      `CREATE SEQUENCE statements;
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
       CREATE TRIGGER go_on AFTER DELETE ON plants EXECUTE FUNCTION go_on()`,
    );
    const other = await openClient(opened.url, "SELECT pg_advisory_lock(1)");
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    let isTold = false;
    const answers = store
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
    return await answers;
  }

  test("tells a caller whose attempt was lost, and went on, that it has deleted the plant", async () => {
    // On a machine that has stalled for long, it is told that nobody knows: then once more.
    const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
    let answers: unknown = unknown;
    for (let rounds = 0; answers === unknown && rounds < 5; rounds++) answers = await tellOfLostAttempt();
    expect(answers).toBe(true);
  });

  test("is closed although its server has vanished without a word", async () => {
    await using opened = await openWith([1n]);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    proxy.freeze();
    await store.close();
  });

  test("does not delete for a call that is given up while it waits", async () => {
    await using opened = await openWith([1n, 2n, 3n]);
    const controller = new AbortController();
    // Two batches are in flight.
    const sent = Promise.all([1n, 2n].map((id) => opened.store.delete(id, deleteCall())));
    const givenUp = opened.store.delete(3n, deleteCall({ signal: controller.signal }));
    expect(opened.store.waiting).toEqual({ forBatch: 1, forBatchMax: 16_384, forLock: 0 });
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(givenUp).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(sent).resolves.toEqual([true, true]);
    expect(await opened.plants()).toEqual([3n]);
  });

  test("is well although a batch is given up, if another one has succeeded meanwhile", async () => {
    await using opened = await openWith([1n, 2n]);
    // It may be done, is refused when it is run again, and cannot be looked up once the gate is open.
    await failTries(opened.url, "DELETE ON plants", ["XX000", "P0001"], 1n);
    await runSql(
      opened.url,
      `CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       CREATE FUNCTION fail_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         WHILE EXISTS (SELECT FROM gate) LOOP
           BEGIN PERFORM pg_sleep(0.005); EXCEPTION WHEN query_canceled THEN END;
         END LOOP;
         RAISE 'no' USING ERRCODE = 'XX000';
       END $$;
       CREATE TRIGGER fail_look BEFORE UPDATE ON deletions EXECUTE FUNCTION fail_look()`,
    );
    const refused = refusalOf(opened.store.delete(1n, deleteCall()));
    await expect(opened.store.delete(2n, deleteCall())).resolves.toBe(true);
    await runSql(opened.url, "DELETE FROM gate");
    expect((await refused).rawMessage).toBe("the outcome of the deletion is unknown; repeating the request is safe");
    expect(opened.store.problem).toBeUndefined();
  });

  test("is not well where the server refuses a batch, although another one has succeeded meanwhile", async () => {
    const url = await createPlantsFor(server, "gardener", [1n, 5n]);
    await runSql(
      url,
      `CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       ${keeping("WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.02); END LOOP")}`,
    );
    const owner = url.replace("user=gardener", "user=tester");
    let connected = Promise.resolve();
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      void connected.then(() => client.pipe(upstream).pipe(client));
    });
    const store = await openPostgresStore({ url: url.replace(server.socketFolder, proxy.socketFolder) });
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
    await store.close();
  });

  test("tells a caller that nobody knows what a fault of its own came to", async () => {
    await using opened = await openWith([1n]);
    await failTries(opened.url, "DELETE ON plants", ["40001"]);
    const context = {
      get signal(): AbortSignal {
        throw new TypeError("there is no signal");
      },
    };
    const refused = await refusalOf(opened.store.delete(1n, { ...deleteCall(), context }));
    expect(refused).toMatchObject({ code: Code.Unavailable, cause: new TypeError("there is no signal") });
    expect(refused.rawMessage).toBe("the outcome of the deletion is unknown; repeating the request is safe");
    expect(opened.store.problem).toBeUndefined();
  });

  test("waits a restart of the server out", async () => {
    await using opened = await openWith([1n, 2n, 3n]);
    await opened.store.delete(1n, deleteCall());
    await server.stop("fast");
    const answers = Promise.all([1n, 2n, 3n].map((id) => opened.store.delete(id, deleteCall())));
    await server.start();
    await expect(answers).resolves.toEqual([false, true, true]);
    expect(opened.store.problem).toBeUndefined();
  });

  test("drops a call that is given up while the server is away, and waits for others", async () => {
    const url = await server.createPlants([1n]);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const store = await openPostgresStore({ url, onBatch: () => () => end() });
    await server.stop("immediate");
    const controller = new AbortController();
    const given = store.delete(1n, deleteCall({ signal: controller.signal }));
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(given).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await ended;
    // That a caller is gone says nothing about the server.
    expect(store.problem).toBeUndefined();
    const answer = store.delete(1n, deleteCall());
    await server.start();
    await expect(answer).resolves.toBe(true);
    await store.close();
  });

  test("sends nothing of what waits behind a batch that was given up", async () => {
    await using opened = await openWith([1n, 2n, 3n, 4n]);
    await failTries(opened.url, "DELETE ON plants", ["42P01", "42P01"]);
    // The first two are batches of their own, and the others wait.
    const answers = await Promise.allSettled([1n, 2n, 3n, 4n].map((id) => opened.store.delete(id, deleteCall())));
    const refused = {
      status: "rejected",
      reason: expect.objectContaining({ rawMessage: "the plant store cannot delete at the moment" }),
    };
    expect(answers).toEqual([refused, refused, refused, refused]);
    expect(await countTries(opened.url)).toBe(2);
    expect(await opened.plants()).toEqual([1n, 2n, 3n, 4n]);
  });

  test.each([
    {
      name: "a table is missing",
      sql: "ALTER TABLE deletions RENAME TO gone",
      undo: "ALTER TABLE gone RENAME TO deletions",
    },
  ])("gives up at once when $name, and deletes nothing", async ({ sql, undo }) => {
    await using opened = await openWith([1n]);
    const batches: unknown[] = [];
    const onBatch = (calls: readonly unknown[]) => (error?: unknown) => batches.push(calls.length, error);
    const store = await openPostgresStore({ url: opened.url, onBatch });
    await runSql(opened.url, sql);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toMatch(/relation "plants_\d+\.deletions" does not exist$/);
    // What is refused from then on is no batch.
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(batches).toEqual([1, expect.any(ConnectError)]);
    await store.close();
    await runSql(opened.url, undo);
    expect(await opened.plants()).toEqual([1n]);
  });

  test.each([
    {
      name: "another table refers to",
      sql: "CREATE TABLE beds (plant bigint REFERENCES plants); INSERT INTO beds VALUES (5), (12)",
    },
    {
      name: "a trigger keeps",
      sql: `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN IF OLD.id IN (5, 12) THEN RAISE 'not this one'; END IF; RETURN OLD; END $$;
            CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`,
    },
    { name: "a trigger keeps with a SQLSTATE of its own", sql: keeping("RAISE 'no' USING ERRCODE = 'PLANT'") },
    { name: "a trigger keeps because a right is missing", sql: keeping("RAISE 'no' USING ERRCODE = '42501'") },
    { name: "a trigger keeps because of a table that is not there", sql: keeping("DELETE FROM nowhere") },
    { name: "a trigger keeps without a word", sql: keeping("RETURN NULL") },
    {
      name: "would be gone without its record, which a trigger drops",
      sql: `CREATE FUNCTION drop_record() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN IF NEW.plant_id IN (5, 12) THEN RETURN NULL; END IF; RETURN NEW; END $$;
            CREATE TRIGGER drop_record BEFORE INSERT ON deletions FOR EACH ROW EXECUTE FUNCTION drop_record()`,
    },
  ])("refuses a plant that $name, and no call for another one at the same time", async ({ sql }) => {
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    await using opened = await openWith(ids);
    await runSql(opened.url, sql);
    const refused = { status: "rejected", reason: expect.objectContaining({ code: Code.FailedPrecondition }) };
    expect(await Promise.allSettled([opened.store.delete(5n, deleteCall())])).toEqual([refused]);
    const answers = await Promise.allSettled([...ids, 99n].map((id) => opened.store.delete(id, deleteCall())));
    expect(answers).toEqual([
      ...ids.map((id) => (id === 5n || id === 12n ? refused : { status: "fulfilled", value: true })),
      { status: "fulfilled", value: false },
    ]);
    expect(opened.store.problem).toBeUndefined();
    expect(await opened.plants()).toEqual([5n, 12n]);
    expect(await runSql(opened.url, "SELECT count(*) FROM deletions")).toEqual([{ count: "18" }]);
  });

  test("lets nobody wait for a plant that another transaction keeps locked", async () => {
    await using opened = await openWith([1n, 2n, 3n, 4n, 5n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id IN (1, 2) FOR UPDATE");
    const order: string[] = [];
    const ask = (id: bigint): Promise<void> =>
      opened.store.delete(id, deleteCall()).then(
        (deleted) => void order.push(`${id}: ${deleted}`),
        ({ code }) => void order.push(`${id}: ${Code[code]}`),
      );
    // Each is asked for twice: once by itself, once beside others.
    const locked = [1n, 2n, 1n, 2n].map(ask);
    await Promise.all([3n, 4n, 9n].map(ask));
    await ask(5n);
    expect(order.toSorted()).toEqual(["3: true", "4: true", "5: true", "9: false"]);
    await Promise.all(locked);
    expect(order.slice(4).toSorted()).toEqual(["1: Unavailable", "1: Unavailable", "2: Unavailable", "2: Unavailable"]);
    expect(opened.store.problem).toBeUndefined();
    // On a machine that has stalled for long, a caller is told to come back: nothing was done.
    const askUntilTold = (id: bigint): Promise<boolean> =>
      opened.store.delete(id, deleteCall()).catch(() => askUntilTold(id));
    const again = [1n, 2n, 1n].map(askUntilTold);
    await expect(opened.store.delete(9n, deleteCall())).resolves.toBe(false);
    await expect.poll(() => opened.store.waiting?.forLock).toBe(3);
    await other.query("COMMIT");
    // One of the two callers for plant 1 has deleted it.
    expect((await Promise.all(again)).filter(Boolean)).toHaveLength(2);
    await expect.poll(() => opened.store.waiting).toEqual({ forBatch: 0, forBatchMax: 16_384, forLock: 0 });
    expect(await opened.plants()).toEqual([]);
    expect(await runSql(opened.url, "SELECT count(*) FROM deletions")).toEqual([{ count: "5" }]);
    await other.end();
  });

  test("waits for the lock of a plant once, and for none while there are plants that are locked", async () => {
    await using opened = await openWith([1n, 2n, 3n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id IN (1, 2) FOR UPDATE");
    const timedOut = (): number => server.log.filter((line) => line.includes("lock timeout")).length;
    const before = timedOut();
    const answers = [1n, 2n].map((id) => refusalOf(opened.store.delete(id, deleteCall())));
    // Each leaves as a batch of its own, and waits by itself.
    await expect.poll(timedOut).toBe(before + 2);
    await expect(opened.store.delete(3n, deleteCall())).resolves.toBe(true);
    expect((await Promise.all(answers)).map(({ code }) => code)).toEqual([Code.Unavailable, Code.Unavailable]);
    expect(timedOut()).toBe(before + 2);
    await other.end();
  });

  test("leaves a plant alone that was locked, if its batch is given up, whose callers are told so", async () => {
    await using opened = await openWith([1n, 2n, 3n, 4n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
    // The batch is divided, and its second half fails for a while, then for good.
    const busy = Array<string>(8).fill("40001");
    await failTries(opened.url, "DELETE ON plants", ["P0001", ...busy, "42P01"], 3n);
    // Plants 7 and 8 are batches of their own, and the others wait.
    const answers = [7n, 8n, 1n, 2n, 3n, 4n].map((id) =>
      opened.store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    // Plant 1 is set aside by now, and free.
    await expect(answers[3]).resolves.toBe(true);
    await other.query("COMMIT");
    const away = "the plant store cannot delete at the moment";
    await expect(Promise.all(answers)).resolves.toEqual([false, false, away, true, away, away]);
    expect(await opened.plants()).toEqual([1n, 3n, 4n]);
    expect(await countTries(opened.url)).toBe(10);
    await other.end();
  });

  test("leaves a caller in doubt whose plant is locked, if the other part of its batch is refused", async () => {
    await using opened = await openWith([1n, 2n]);
    // Two batches of one, and one of two that is divided: its first half is lost, waits for the lock in vain, and skips
    // it; the second one is refused.
    await failTries(opened.url, "DELETE ON plants", ["", "", "P0001", "XX000", "", "", "42P01"]);
    await runSql(
      opened.url,
      `CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.005); END LOOP;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait AFTER DELETE ON plants EXECUTE FUNCTION wait()`,
    );
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
    const answers = [7n, 8n, 1n, 2n].map((id) =>
      opened.store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    await expect.poll(() => countTries(opened.url)).toBe(2);
    await runSql(opened.url, "DELETE FROM gate");
    await expect(Promise.all(answers)).resolves.toEqual([
      false,
      false,
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the plant store cannot delete at the moment",
    ]);
    expect(await countTries(opened.url)).toBe(7);
    await other.end();
  });

  test("uses few connections, however many deletions it has done, and tells of each batch", async () => {
    const batches: unknown[] = [];
    await using opened = await openWith(Array.from({ length: 20 }, (_, i) => BigInt(i)));
    const onBatch = (calls: readonly unknown[]) => {
      batches.push(calls.length);
      return (error?: unknown) => batches.push(error);
    };
    const begunMs = performance.now();
    const store = await openPostgresStore({ url: `${opened.url}&application_name=few`, onBatch });
    for (let id = 0n; id < 20n; id++) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    // That of the deletions, and on a slow machine one that has looked at the server meanwhile. One that has looked for
    // old records is closed soon.
    const most = performance.now() - begunMs < watchIntervalMs ? 1 : 2;
    const connections = "SELECT FROM pg_stat_activity WHERE application_name = 'few'";
    await expect.poll(async () => (await runSql(opened.url, connections)).length).toBeLessThanOrEqual(most);
    expect(batches).toEqual(Array.from({ length: 20 }, () => [1, undefined]).flat());
    await store.close();
  });

  test("tells a caller for a locked plant the truth when it is closed", async () => {
    await using opened = await openWith([1n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants FOR UPDATE");
    const codes: unknown[] = [];
    const answer = opened.store.delete(1n, deleteCall()).catch(({ code }) => void codes.push(code));
    await opened.store.close();
    // It is told by then.
    expect(codes).toEqual([Code.Unavailable]);
    await answer;
    await other.end();
    expect(await opened.plants()).toEqual([1n]);
  });

  /** What a caller is told whose plant becomes free while the store is being closed, and what that leaves open. */
  async function closeWhileLocked(): Promise<unknown> {
    await using opened = await openWith([1n]);
    let connections = 0;
    let store: PlantStore | undefined;
    let problem: string | undefined;
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      connections++;
      client.on("close", () => {
        connections--;
        problem = store?.problem?.replace(/.*: /, "");
      });
      client.pipe(upstream).pipe(client);
    });
    store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants FOR UPDATE");
    const answer = store.delete(1n, deleteCall()).catch(({ code }) => code);
    const closed = store.close();
    await expect.poll(() => store.waiting?.forLock).toBe(1);
    await other.query("COMMIT");
    await closed;
    const left = connections;
    await other.end();
    return { answer: await answer, left, problem };
  }

  test("is closed once it has deleted what became free meanwhile, and its connections are closed", async () => {
    // Once it says so, no look at the server makes another connection.
    const ended = { answer: true, left: 0, problem: "the store is closed" };
    // On a machine that has stalled, the plant was free too late, or a connection was cut off: then once more.
    let found: unknown;
    for (let rounds = 0; !isDeepStrictEqual(found, ended) && rounds < 5; rounds++) found = await closeWhileLocked();
    expect(found).toEqual(ended);
  });

  test.each([
    { lacking: "DELETE on plants", sql: "REVOKE DELETE ON plants FROM clerk" },
    { lacking: "UPDATE on deletions", sql: "REVOKE UPDATE ON deletions FROM clerk" },
    { lacking: "INSERT on deletions", sql: "REVOKE INSERT ON deletions FROM clerk" },
  ])("is not opened by a user who lacks $lacking, and says so if it is open", async ({ lacking, sql }) => {
    await using opened = await openWith([1n]);
    const schema = /plants_\d+/.exec(opened.url)?.[0];
    await runSql(
      opened.url,
      `DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ${schema} TO clerk;
       GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO clerk`,
    );
    const url = opened.url.replace("user=tester", "user=clerk");
    const store = await openPostgresStore({ url });
    await runSql(opened.url, sql);
    await expect(openPostgresStore({ url })).rejects.toThrow(new RegExp(`: the user lacks ${lacking}$`));
    await runSql(opened.url, "REVOKE DELETE ON plants FROM clerk");
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await expect.poll(() => store.problem).toMatch(new RegExp(`: the user lacks .*${lacking}$`));
    await store.close();
    await runSql(opened.url, "DROP OWNED BY clerk; DROP ROLE clerk");
  });

  test("waits for a server that is read-only, whether it is open already or opened now", async () => {
    await using opened = await openWith([1n]);
    await runSql(opened.url, "CREATE ROLE writer LOGIN SUPERUSER");
    const url = opened.url.replace("user=tester", "user=writer");
    const store = await openPostgresStore({ url });
    await store.delete(9n, deleteCall());
    await runSql(opened.url, "ALTER ROLE writer SET default_transaction_read_only = on");
    await runSql(opened.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'");
    const answer = store.delete(1n, deleteCall());
    const other = await openPostgresStore({ url });
    expect(other.problem).toMatch(/: the server is read-only$/);
    await expect(other.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await runSql(opened.url, "ALTER ROLE writer RESET default_transaction_read_only");
    await expect(answer).resolves.toBe(true);
    await expect.poll(() => other.problem).toBeUndefined();
    await other.close();
    await store.close();
  });

  test.each([
    { name: "nothing is wrong", sqlState: undefined, isWell: true },
    { name: "a trigger refuses a record", sqlState: "P0001", isWell: true },
    { name: "the disk is full", sqlState: "53100", isWell: false },
    { name: "a table cannot be written", sqlState: "25006", isWell: false },
    { name: "it is read-only", options: "%20-cdefault_transaction_read_only%3Don", fails: "25006", isWell: false },
  ])(
    "finds out whether it could delete where $name, and leaves nothing of it",
    async ({ sqlState, options = "", fails = sqlState, isWell }) => {
      const url = await server.createPlants([0n]);
      if (sqlState !== undefined) await failAlways(url, "INSERT ON deletions", sqlState);
      const session = new Session(readServerUrl(`${url}${options}`));
      const checked = oneServer(schemaOf(session)).checkWrite(session);
      if (isWell) await checked;
      else await expect(checked).rejects.toMatchObject({ code: fails });
      // What was begun in vain is over.
      expect(session.processId === undefined).toBe(!isWell || sqlState !== undefined);
      // One that was refused is of no use.
      if (isWell) await expect(session.query("SELECT id FROM plants")).resolves.toEqual([["0"]]);
      await session.close();
      expect(await runSql(url, "SELECT FROM deletions")).toEqual([]);
    },
  );

  test("waits for no other look, nor does a deletion wait for one", async () => {
    const url = await server.createPlants([0n]);
    const open = (): Session => new Session(readServerUrl(`${url}&application_name=looks`));
    const [first, second, third] = [open(), open(), open()];
    const { answers } = await withoutStandby(url, async () => {
      const untold = [
        oneServer(schemaOf(first)).checkWrite(first),
        oneServer(schemaOf(second)).checkWrite(second),
        third.run("DELETE FROM plants WHERE id = 0"),
      ];
      const waiting = "SELECT wait_event FROM pg_stat_activity WHERE application_name = 'looks' AND state = 'active'";
      // Each has done all that it does before its commit.
      await expect.poll(() => runSql(url, waiting)).toEqual(untold.map(() => ({ wait_event: "SyncRep" })));
      return { answers: Promise.all(untold) };
    });
    await answers;
    for (const session of [first, second, third]) await session.close();
  });

  test("looks at a new server once the old one can no longer be written", async () => {
    const url = await server.createPlants([1n]);
    await runSql(url, "CREATE ROLE demoted LOGIN SUPERUSER; ALTER ROLE demoted SET default_transaction_read_only = on");
    let connections = 0;
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      connections++;
      client.pipe(upstream).pipe(client);
    });
    const throughProxy = url.replace(server.socketFolder, proxy.socketFolder).replace("user=tester", "user=demoted");
    const store = await openPostgresStore({ url: throughProxy });
    // The one that opens it, and that of the retention; each look has one of its own.
    await expect.poll(() => connections).toBeGreaterThan(3);
    await runSql(url, "ALTER ROLE demoted RESET default_transaction_read_only");
    await expect.poll(() => store.problem).toBeUndefined();
    await store.close();
  });

  test("is not well where a batch is given up, and another one has only missed", async () => {
    await using opened = await openWith([1n]);
    // The batch of plant 1 has met its first fault, and is given up once the gate is open.
    await runSql(
      opened.url,
      `CREATE SEQUENCE faults;
       CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         PERFORM nextval('faults');
         WHILE EXISTS (SELECT FROM gate) LOOP
           BEGIN PERFORM pg_sleep(0.005); EXCEPTION WHEN query_canceled THEN END;
         END LOOP;
         RAISE 'no' USING ERRCODE = 'XX000';
       END $$;
       CREATE TRIGGER fail BEFORE UPDATE ON deletions EXECUTE FUNCTION fail()`,
    );
    await failTries(opened.url, "DELETE ON plants", ["XX000", "P0001"], 1n);
    const refused = refusalOf(opened.store.delete(1n, deleteCall()));
    await expect.poll(() => runSql(opened.url, "SELECT is_called FROM faults")).toEqual([{ is_called: true }]);
    await expect(opened.store.delete(9n, deleteCall())).resolves.toBe(false);
    await runSql(opened.url, "DELETE FROM gate");
    await refused;
    expect(opened.store.problem).toBeDefined();
  });

  test.each(["", "%20-cclient_min_messages%3Derror"])(
    "acknowledges nothing that its synchronous standbys do not have, with options%s",
    async (options) => {
      await using opened = await openWith([1n]);
      const store = await openPostgresStore({ url: `${opened.url}${options}` });
      const waiting = (query: string): Promise<unknown> =>
        runSql(opened.url, `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%${query}%'`);
      const answers = await withoutStandby(opened.url, async () => {
        await server.stop("fast");
        await server.start();
        const deleting = store.delete(1n, deleteCall());
        await expect.poll(() => waiting("WITH deleted")).not.toEqual([]);
        await cancelWaitsForStandby(opened.url);
        await expect.poll(() => waiting("SET batch = batch")).not.toEqual([]);
        return { deleting };
      });
      await expect(answers.deleting).resolves.toBe(true);
      expect(await opened.plants()).toEqual([]);
      await store.close();
    },
  );
});
