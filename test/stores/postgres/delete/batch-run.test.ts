import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import { BatchRun } from "../../../../src/stores/postgres/delete/batch-run.ts";
import { deleteTimeouts, singleServer, type StoreTables } from "../../../../src/stores/postgres/delete/store-tables.ts";
import { openPostgresStore } from "../../../../src/stores/postgres/postgres-store.ts";
import { storeSchema } from "../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { callersOf, callerWith, countAttempts, createPlantsUpTo, deleteCall, failAttempts, listenersOf, openClient,
  plantsOf, runBatchWith, runSql, sentDeletion, startCuttingProxy, startPostgresOfFile, withoutStandby
} from "../../../support/plants/index.ts";

const away = "the plant store cannot process the request at the moment";
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
const kept = "the database does not allow deleting plant 1";
const server = await startPostgresOfFile();
const openSession = (url: string): Session => new Session(readServerUrl(url));
const tablesOf = (url: string) => singleServer(storeSchema(readServerUrl(url).settings.get("search_path") ?? ""));

/** Creates a role that may not delete plants, and whose errors have a context with the statement's parameters. */
const createReader = (url: string): Promise<unknown> =>
  runSql(
    url,
    `CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA ${/plants_\d+/.exec(url)?.[0]} TO reader;
     GRANT SELECT, UPDATE ON plants TO reader; GRANT SELECT, INSERT ON deletions TO reader;
     ALTER ROLE reader SET log_parameter_max_length_on_error = -1`,
  );

describe("a batch", () => {
  test.each([
    { sqlStates: ["40001", "40P01", "25P03", "25P04", "40001"] },
    { sqlStates: ["57P02", "57P05", "57P01", "40003"] },
  ])("is repeated after $sqlStates until it succeeds", async ({ sqlStates }) => {
    const url = await createPlantsUpTo(server, 3);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const session = openSession(url);
    await expect(runBatchWith(session, callersOf(1n, 2n, 9n))).resolves.toEqual([true, true, false]);
    await session.close();
    expect(await countAttempts(url)).toBe(sqlStates.length + 1);
    expect(await plantsOf(url)).toEqual(["3"]);
  });

  test.each([
    { sqlStates: ["42P01"], result: away },
    { sqlStates: ["40001", "42P01"], result: away },
    { sqlStates: ["40003", "42P01"], result: unknown },
    { sqlStates: ["40003", "40001", "25P03", "42P01"], result: unknown },
  ])("with $sqlStates fails without further attempts", async ({ sqlStates, result }) => {
    const url = await createPlantsUpTo(server, 2);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const session = openSession(url);
    const { deletions, results } = listenersOf(1n, 2n);
    await expect(runBatchWith(session, deletions)).rejects.toMatchObject({ verdict: "fail" });
    await session.close();
    expect(results).toEqual([result, result]);
    expect(await countAttempts(url)).toBe(sqlStates.length);
    expect(await plantsOf(url)).toEqual(["1", "2"]);
  });

  test.each([
    { sqlState: "40001", result: away },
    { sqlState: "25P03", result: away },
    { sqlState: "40003", result: unknown },
  ])("fails after its deadline if each attempt fails with $sqlState", async ({ sqlState, result }) => {
    const url = await createPlantsUpTo(server, 1);
    await failAttempts(url, "DELETE ON plants", Array<string>(1_000).fill(sqlState));
    const session = openSession(url);
    session.deadlineMs = performance.now() + 1_300;
    const { deletions, results } = listenersOf(1n);
    await expect(runBatchWith(session, deletions)).rejects.toHaveProperty("fault");
    await session.close();
    expect(results).toEqual([result]);
    // With pauses that double from 5 ms to a second there are about ten attempts; without pauses, hundreds.
    expect(await countAttempts(url)).toBeLessThan(16);
    expect(await plantsOf(url)).toEqual(["1"]);
  });

  test.each([
    { name: "the server is unreachable", arrange: () => server.stop("fast"), user: "tester", verdict: "retry" },
    { name: "the server refuses the user", arrange: () => Promise.resolve(), user: "nobody", verdict: "fail" },
    { name: "its user may only read", arrange: createReader, user: "reader", verdict: "fail" },
  ])("deletes nothing because $name", async ({ arrange, user, verdict }) => {
    const url = await createPlantsUpTo(server, 1);
    await arrange(url);
    const session = openSession(url.replace("user=tester", `user=${user}`));
    if (verdict === "retry") session.deadlineMs = 0;
    const { deletions, results } = listenersOf(1n);
    await expect(runBatchWith(session, deletions)).rejects.toMatchObject({ verdict });
    expect(results).toEqual([away]);
  });

  // Each entry is for one statement: the whole batch, then its first half, and so on.
  test.each([
    { sqlStates: ["P0001", "42P01"], results: [away, away, away, away] },
    { sqlStates: ["P0001", "40003", "P0001"], results: [true, true, true, true] },
    { sqlStates: ["40003", "23503", "23503", "23503"], results: [kept, true, true, true] },
    { sqlStates: ["40003", "P0001", "42P01"], results: [unknown, unknown, unknown, unknown] },
    { sqlStates: ["3F000", "53100", "58030"], results: [away, true, true, true] },
    { sqlStates: ["XX000", "57P03", "25006", "25006"], results: [away, true, true, true] },
    // It is not known whether the earlier attempt will delete the plant.
    { sqlStates: ["40003", "3F000", "3F000", "3F000"], results: [unknown, true, true, true] },
    { sqlStates: ["23503", "23503", "23503"], results: [kept, true, true, true] },
  ])("with $sqlStates is halved, and ends as $results", async ({ sqlStates, results }) => {
    const url = await createPlantsUpTo(server, 4);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const session = openSession(url);
    const listeners = listenersOf(1n, 2n, 3n, 4n);
    await runBatchWith(session, listeners.deletions).catch(() => undefined);
    await session.close();
    expect(listeners.results).toEqual(results);
    expect(await plantsOf(url)).toEqual(["1", "2", "3", "4"].filter((_, i) => results[i] !== true));
  });

  test("records only a plant's first deletion", async () => {
    const url = await createPlantsUpTo(server, 3);
    const session = openSession(url);
    const deletions = [1n, 2n, 1n, 1n].map((id, i) => sentDeletion(id, deleteCall({ subject: `caller-${i}` })));
    await expect(runBatchWith(session, deletions)).resolves.toEqual([true, true, false, false]);
    await session.close();
    expect(await runSql(url, "SELECT plant_id, subject FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1", subject: "caller-0" },
      { plant_id: "2", subject: "caller-1" },
    ]);
  });

  test("reports a plant that a trigger keeps as protected to each of its callers, and to no other", async () => {
    const url = await createPlantsUpTo(server, 2);
    const sql = `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()`;
    await runSql(url, sql);
    const session = openSession(url);
    const results: unknown[] = [];
    const batch = [1n, 1n, 2n].map((id, i) =>
      sentDeletion(id, deleteCall({ idempotencyKey: i === 1 ? "b" : "a" }), undefined, (reason) => {
        results[i] = reason;
      }),
    );
    const locked: bigint[] = [];
    await runBatchWith(session, batch, { defer: ({ id }) => locked.push(id) });
    expect(results).toMatchObject([{ rawMessage: kept }, { rawMessage: kept }]);
    // Its key is that of a deletion that failed.
    expect(locked).toEqual([2n]);
    await session.close();
  });

  test("reports each of several plants that a trigger keeps without an error as protected", async () => {
    const url = await createPlantsUpTo(server, 4);
    const sql = `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id IN (2, 3)) EXECUTE FUNCTION keep()`;
    await runSql(url, sql);
    const session = openSession(url);
    const { deletions, results } = listenersOf(1n, 2n, 3n, 4n, 9n);
    await runBatchWith(session, deletions);
    const [second, third] = [2, 3].map((id) => `the database does not allow deleting plant ${id}`);
    expect(results).toEqual([true, second, third, true, false]);
    await session.close();
  });

  test("excludes cancelled calls from later attempts and rejects them", async () => {
    const url = await createPlantsUpTo(server, 3);
    await failAttempts(url, "DELETE ON plants", ["40001"]);
    const session = openSession(url);
    const controller = new AbortController();
    const results: unknown[] = [];
    const batch = [1n, 2n, 3n].map((id) =>
      sentDeletion(id, deleteCall(id === 2n ? { signal: controller.signal } : {}), undefined, (reason) =>
        results.push(reason),
      ),
    );
    const outcomes = runBatchWith(session, batch);
    // The first attempt reads no signals.
    controller.abort("too late");
    await expect(outcomes).resolves.toEqual([true, undefined, true]);
    await session.close();
    expect(results).toEqual(["too late"]);
    expect(await plantsOf(url)).toEqual(["2"]);
  });

  test("reports a missing plant only after the standbys confirm its deletion", async () => {
    const url = await createPlantsUpTo(server, 1);
    const session = openSession(url);
    let outcomes: ReturnType<typeof runBatchWith> | undefined;
    await withoutStandby(url, async () => {
      await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
      outcomes = runBatchWith(session, callersOf(9n));
      const isSettled = outcomes.then(() => true);
      const waits = expect
        .poll(() => runSql(url, "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        .toHaveLength(1);
      expect(await Promise.race([isSettled, waits.then(() => false)])).toBe(false);
    });
    await expect(outcomes).resolves.toEqual([false]);
    await session.close();
  });
});

test("a batch fails instead of missing plants that row security hides behind a pooler", async () => {
  const url = await createPlantsUpTo(server, 2);
  const schema = /plants_\d+/.exec(url)?.[0];
  const sql = `CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ${schema} TO clerk; GRANT ALL ON plants, deletions TO clerk;
     ALTER TABLE plants ENABLE ROW LEVEL SECURITY`;
  await runSql(url, sql);
  const session = openSession(url.replace("user=tester", "user=clerk"));
  await session.run("SET row_security = on");
  await expect(runBatchWith(session, callersOf(1n, 9n))).rejects.toMatchObject({ verdict: "fail" });
  await session.close();
  await runSql(url, "DROP OWNED BY clerk; DROP ROLE clerk");
  expect(await plantsOf(url)).toEqual(["1", "2"]);
});

describe("a batch with locked plants", () => {
  test.each([
    { name: "the plants", arrange: "SELECT", lock: "SELECT FROM plants WHERE id IN (2, 5) FOR UPDATE", waits: false },
    {
      name: "rows that depend on the plants",
      arrange: `CREATE TABLE beds (plant bigint REFERENCES plants ON DELETE CASCADE);
                INSERT INTO beds SELECT generate_series(1, 6)`,
      lock: "SELECT FROM beds WHERE plant IN (2, 5) FOR UPDATE",
      waits: true,
    },
  ])("deletes the others while $name are locked, and waits for them: $waits", async ({ arrange, lock, waits }) => {
    const url = await createPlantsUpTo(server, 6);
    await runSql(url, arrange);
    const other = await openClient(url, `BEGIN; ${lock}`);
    const session = openSession(url);
    const timeouts = (): number => server.log.filter((line) => line.includes("due to lock timeout")).length;
    const before = timeouts();
    const { deletions, results } = listenersOf(1n, 2n, 3n, 2n, 9n, 5n, 6n, 6n);
    const locked: bigint[] = [];
    await runBatchWith(session, deletions, { defer: ({ id }) => locked.push(id) });
    expect(results).toEqual([true, undefined, true, undefined, false, undefined, true, false]);
    expect(locked).toEqual([2n, 2n, 5n]);
    expect(await plantsOf(url)).toEqual(["2", "4", "5"]);
    // A line of the log may arrive late.
    if (waits) await expect.poll(timeouts).toBeGreaterThan(before);
    else expect(timeouts()).toBe(before);
    await other.end();
    await session.close();
  });

  test("waits for a locked table", async () => {
    const url = await createPlantsUpTo(server, 2);
    const other = await openClient(url, "BEGIN; LOCK TABLE plants IN SHARE MODE");
    await using session = closing(new Session(readServerUrl(url), deleteTimeouts));
    session.deadlineMs = performance.now() + 10_000;
    const outcomes = runBatchWith(session, callersOf(1n, 2n));
    const timedOut = (): number => server.log.filter((line) => line.includes("lock timeout")).length;
    const before = timedOut();
    await expect.poll(timedOut).toBeGreaterThan(before + 2);
    await other.end();
    await expect(outcomes).resolves.toEqual([true, true]);
  });
});

describe("a batch in doubt", () => {
  test.each([
    { name: "its own record", isOwn: true },
    { name: "the record of another batch", isOwn: false },
  ])("waits for a lost attempt, and is then settled by $name", async ({ isOwn }) => {
    const url = await createPlantsUpTo(server, 3);
    const token = randomUUID();
    // The attempt that was lost is still running.
    const lost = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await lost.query(
      `INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${isOwn ? token : randomUUID()}')`,
    );
    const session = openSession(url);
    const batch = callersOf(1n, 1n, 2n);
    batch[0]?.doubts.push(token);
    const locked: unknown[] = [];
    const defer = (one: unknown): void => void locked.push(one);
    await expect(runBatchWith(session, batch, { defer })).resolves.toEqual([undefined, undefined, true]);
    expect(locked).toEqual([batch[0], batch[1]]);
    await lost.query("COMMIT");
    await lost.end();
    // The second caller has no doubt, because only the first deletion of a plant is sent.
    await expect(runBatchWith(session, batch.slice(0, 2))).resolves.toEqual([isOwn, false]);
    await session.close();
  });

  test.each([
    { name: "a trigger of the plant", trigger: "FOR EACH ROW WHEN (OLD.id = 1)" },
    { name: "a trigger of the statement", trigger: "FOR EACH STATEMENT" },
  ])("is deleted by its lost attempt although $name refuses the next one", async ({ trigger }) => {
    const url = await createPlantsUpTo(server, 1);
    const token = randomUUID();
    const lost = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await lost.query(`INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${token}')`);
    const refusing = await openClient(url, "SET lock_timeout = 0");
    const sql = `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
       CREATE TRIGGER keep BEFORE DELETE ON plants ${trigger} EXECUTE FUNCTION keep()`;
    const creating = refusing.query(sql);
    await lost.query("COMMIT");
    await creating;
    const session = openSession(url);
    const batch = callersOf(1n);
    batch[0]?.doubts.push(token);
    await expect(runBatchWith(session, batch)).resolves.toEqual([true]);
    await Promise.all([lost.end(), refusing.end(), session.close()]);
  });

  test("is deleted by its lost attempt although a trigger has changed the subject of its key", async () => {
    const url = await createPlantsUpTo(server, 0);
    const [own, token] = [callerWith(1n, "a"), randomUUID()];
    own.doubts.push(token);
    const values = `VALUES (1, 'CHANGED', '', '${token}', 'a')`;
    await runSql(url, `INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key) ${values}`);
    await using session = closing(openSession(url));
    const { outcomes } = await new BatchRun(session, tablesOf(url)).run([own, callerWith(1n, "a")]);
    expect(outcomes).toEqual(["deleted", "key-reused"]);
  });

  test("reports a recorded plant as deleted even if it exists again", async () => {
    const url = await createPlantsUpTo(server, 2);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const session = openSession(url.replace(server.socketFolder, proxy.socketFolder));
    const wasCut = proxy.cutNext("before-reply");
    const outcomes = runBatchWith(session, callersOf(1n, 2n, 9n, 1n));
    await wasCut;
    await expect(outcomes).resolves.toEqual([true, true, false, false]);
    await session.close();
    expect(await plantsOf(url)).toEqual([]);
    expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "2" }]);
  });

  test.each([
    { code: "40P01", want: [true, false] },
    { code: "42P01", want: [true, away] },
  ])("knows what it has deleted if only the question why fails, with $code", async ({ code, want }) => {
    const url = await createPlantsUpTo(server, 1);
    const session = openSession(url);
    let questions = 0;
    const findWhy: StoreTables["findWhy"] = async (...values) => {
      if (questions++ > 0) return await tablesOf(url).findWhy(...values);
      await runSql(url, "INSERT INTO plants VALUES (1)");
      throw Object.assign(new Error("the question fails"), { severity: "ERROR", code });
    };
    const { deletions, results } = listenersOf(1n, 9n);
    await runBatchWith(session, deletions, { tables: { ...tablesOf(url), findWhy } }).catch(() => undefined);
    await session.close();
    // The plant was restored after its deletion.
    expect([results, await plantsOf(url)]).toEqual([want, ["1"]]);
  });

  test.each([
    { isDistributed: true, outcomes: ["deleted", "locked"] },
    { isDistributed: false, outcomes: ["deleted", "key-reused"] },
  ])("repeats a deletion, and tells another plant with its key $outcomes", async ({ isDistributed, outcomes }) => {
    const url = await createPlantsUpTo(server, 2);
    const session = openSession(url);
    const run = (): BatchRun => new BatchRun(session, { ...tablesOf(url), isDistributed });
    const [first, second] = [run(), run()];
    await first.run([callerWith(1n, "a")]);
    const repeated = await second.run([callerWith(1n, "a"), callerWith(2n, "a")]);
    await session.close();
    expect([repeated.outcomes, first.hasDeleted, second.hasDeleted]).toEqual([outcomes, true, false]);
  });
});

describe.each([
  {
    name: "partitions",
    arrange: `ALTER TABLE plants RENAME TO old; CREATE TABLE plants (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
      CREATE TABLE low PARTITION OF plants FOR VALUES FROM (MINVALUE) TO (10);
      CREATE TABLE high PARTITION OF plants FOR VALUES FROM (10) TO (MAXVALUE); DROP TABLE old;
      INSERT INTO plants SELECT generate_series(1, 4) UNION ALL SELECT generate_series(11, 14)`,
  },
  {
    name: "a table that inherits from it",
    arrange: `CREATE TABLE more () INHERITS (plants); INSERT INTO more SELECT generate_series(11, 14)`,
  },
])("a table plants with $name", ({ arrange }) => {
  test("loses only the requested plants, although rows of two tables have one location", async () => {
    const url = await createPlantsUpTo(server, 4);
    await runSql(url, arrange);
    await using store = await openPostgresStore({ url }).then((opened) => ({
      ...opened,
      delete: opened.delete.bind(opened),
      [Symbol.asyncDispose]: () => opened.close(),
    }));
    const deleting = Promise.all([1n, 12n, 3n, 13n, 99n].map((id) => store.delete(id, deleteCall())));
    await expect(deleting).resolves.toEqual([true, true, true, true, false]);
    expect(await plantsOf(url)).toEqual(["2", "4", "11", "14"]);
    expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "4" }]);
  });

  test("loses no other plant if it gets the rows while a store is open", async () => {
    const url = await createPlantsUpTo(server, 4);
    const session = openSession(url);
    await session.connect();
    await runSql(url, arrange);
    // The tables of a store that does not know it yet.
    const tables = tablesOf(url);
    await runBatchWith(session, [callerWith(1n, "a"), ...callersOf(2n, 3n)], { tables, defer: () => undefined });
    await session.close();
    expect(await plantsOf(url)).toEqual(expect.arrayContaining(["4", "11", "12", "13", "14"]));
  });
});
