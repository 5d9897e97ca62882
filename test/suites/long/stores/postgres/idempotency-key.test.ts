import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { DeleteCall } from "../../../../../src/service/plant-store.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { deleteCall, failAttempts, openClient, runBatchWith, runSql, sentDeletion, startCuttingProxy,
  startPostgresOfFile } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

async function openPlants(count: number) {
  const url = await server.createPlants(Array.from({ length: count }, (_, i) => BigInt(i + 1)));
  const store = await openPostgresStore({ url });
  return { url, store, [Symbol.asyncDispose]: () => store.close() };
}

/** Returns SQL that records that a plant was deleted earlier for a key, whether or not the plant exists now. */
function recordSql(plantId: number, key: string, subject = "tester"): string {
  return `INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key)
    VALUES (${plantId}, '${subject}', '', gen_random_uuid(), '${key}')`;
}

const column = async (url: string, sql: string): Promise<unknown[]> =>
  (await runSql(url, sql)).map((row) => Object.values(row)[0]);

const plantsSql = "SELECT id FROM plants ORDER BY id";
const keysSql = "SELECT plant_id || ' ' || coalesce(idempotency_key, '-') FROM deletions ORDER BY 1";
const taken = { status: "rejected", reason: expect.objectContaining({ code: Code.AlreadyExists }) };
const deleted = { status: "fulfilled", value: true };
const missing = { status: "fulfilled", value: false };

function keyed(idempotencyKey: string, changes: Partial<DeleteCall> = {}): DeleteCall {
  return { ...deleteCall({ idempotencyKey }), ...changes };
}

/** Creates one batch's deletions, and returns them with their outcomes. */
function batchOf(...calls: readonly (readonly [id: bigint, call: DeleteCall])[]) {
  const outcomes = calls.map(() => Promise.withResolvers<boolean>());
  const batch = calls.map(([id, call], i) =>
    sentDeletion(
      id,
      call,
      (isDeleted) => outcomes[i]?.resolve(isDeleted),
      (reason) => outcomes[i]?.reject(reason),
    ),
  );
  const results = Promise.allSettled(outcomes.map(({ promise }) => promise));
  /** Runs the deletions as the store does, and returns the ids of deferred deletions. */
  const run = async (session: Session): Promise<readonly bigint[]> => {
    const defer: bigint[] = [];
    await runBatchWith(session, batch, { defer: ({ id }) => defer.push(id) });
    return defer;
  };
  return { run, results };
}

describe("a deletion with a used key", () => {
  // All plants exist, as after an import that restores them.
  test.each([
    { name: "gets the first outcome", arrange: "SELECT", requested: 1n, subject: "tester", results: deleted },
    { name: "for another plant is refused", arrange: "SELECT", requested: 2n, subject: "tester", results: taken },
    { name: "by another subject is refused", arrange: "SELECT", requested: 1n, subject: "bob", results: taken },
    {
      name: "gets the first outcome even if a table now references the plant",
      arrange: "CREATE TABLE beds (plant bigint REFERENCES plants); INSERT INTO beds VALUES (1)",
      requested: 1n,
      subject: "tester",
      results: deleted,
    },
    {
      name: "gets the first outcome even if a trigger now refuses the plant",
      arrange: `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
                CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()`,
      requested: 1n,
      subject: "tester",
      results: deleted,
    },
    {
      name: "gets the first outcome even if a trigger now keeps the plant",
      arrange: `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
                CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()`,
      requested: 1n,
      subject: "tester",
      results: deleted,
    },
  ])("$name", async ({ arrange, requested, subject, results }) => {
    await using opened = await openPlants(6);
    await runSql(opened.url, `${recordSql(1, "used")}; ${arrange}`);
    const ask = (): Promise<boolean> => opened.store.delete(requested, keyed("used", { subject }));
    expect(await Promise.allSettled([ask()])).toEqual([results]);
    // The first two deletions run as separate batches.
    const all = [3n, 4n].map((id) => opened.store.delete(id, deleteCall()));
    all.push(ask(), opened.store.delete(5n, keyed("new")), ask(), opened.store.delete(9n, keyed("nothing")));
    expect(await Promise.allSettled(all)).toEqual([deleted, deleted, results, deleted, results, missing]);
    expect(await column(opened.url, plantsSql)).toEqual(["1", "2", "6"]);
    expect(await column(opened.url, keysSql)).toEqual(["1 used", "3 -", "4 -", "5 new"]);
    expect(opened.store.problem).toBeUndefined();
  });

  test("does not prevent the next caller from deleting the plant", async () => {
    await using opened = await openPlants(2);
    await runSql(opened.url, recordSql(9, "used"));
    // The first two deletions run as separate batches.
    const others = [7n, 8n].map((id) => opened.store.delete(id, deleteCall()));
    const results = await Promise.allSettled([
      opened.store.delete(1n, keyed("used")),
      opened.store.delete(1n, deleteCall()),
      opened.store.delete(2n, keyed("new")),
      opened.store.delete(2n, deleteCall()),
    ]);
    await Promise.all(others);
    expect(results).toEqual([taken, deleted, deleted, missing]);
    expect(await column(opened.url, keysSql)).toEqual(["1 -", "2 new", "9 used"]);
  });

  test("is settled once although its plant is locked", async () => {
    await using opened = await openPlants(1);
    await runSql(opened.url, recordSql(1, "used"));
    await failAttempts(opened.url, "DELETE ON plants", ["40001"]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants FOR UPDATE");
    const session = new Session(readServerUrl(opened.url));
    const { run } = batchOf([1n, keyed("used")], [1n, deleteCall()]);
    await expect(run(session)).resolves.toEqual([1n]);
    await session.close();
    await other.end();
  });

  // The statement skips a plant whose record is dropped before its key's lookup.
  test("is retried if its record is dropped during the batch", async () => {
    await using opened = await openPlants(2);
    const sql = `${recordSql(1, "used")};
       CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         DELETE FROM deletions WHERE plant_id = 1; RETURN OLD;
       END $$;
       CREATE TRIGGER forget BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 2) EXECUTE FUNCTION forget()`;
    await runSql(opened.url, sql);
    const session = new Session(readServerUrl(opened.url));
    const { run } = batchOf([1n, keyed("used")], [2n, deleteCall()]);
    await expect(run(session)).resolves.toEqual([1n]);
    expect(await column(opened.url, plantsSql)).toEqual(["1"]);
    await expect(run(session)).resolves.toEqual([]);
    await session.close();
    expect(await column(opened.url, plantsSql)).toEqual([]);
  });
});

describe("two deletions with the same key in one batch", () => {
  test.each([
    { name: "both report the same plant as deleted", ids: [1n, 1n], defer: [], results: [deleted, deleted] },
    { name: "both report the same plant as missing", ids: [9n, 9n], defer: [], results: [missing, missing] },
    { name: "both report different plants as missing", ids: [9n, 8n], defer: [], results: [missing, missing] },
    { name: "refuse the second if it is for another plant", ids: [1n, 2n], defer: [], results: [deleted, taken] },
    { name: "defer the second if the first found no plant", ids: [9n, 1n], defer: [1n], results: [missing] },
    {
      name: "defer the second if the first's record was dropped",
      ids: [1n, 2n],
      defer: [2n],
      results: [deleted],
      arrange: `CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN DELETE FROM deletions WHERE seq = NEW.seq; RETURN NULL; END $$;
                CREATE TRIGGER forget AFTER INSERT ON deletions FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
                EXECUTE FUNCTION forget()`,
    },
  ])("$name", async ({ ids, defer, results, arrange }) => {
    await using opened = await openPlants(3);
    if (arrange !== undefined) await runSql(opened.url, arrange);
    const session = new Session(readServerUrl(opened.url));
    const batch = batchOf(...ids.map((id) => [id, keyed("key")] as const), [3n, deleteCall()]);
    await expect(batch.run(session)).resolves.toEqual(defer);
    await session.close();
    // The batch does not settle deferred deletions.
    if (defer.length === 0) expect(await batch.results).toEqual([...results, deleted]);
    const wasUsed = ids[0] === 1n && arrange === undefined;
    expect(await column(opened.url, keysSql)).toEqual(wasUsed ? ["1 key", "3 -"] : ["3 -"]);
  });
});

test("300 deletions of missing plants with one key settle in their batch", async () => {
  await using opened = await openPlants(3);
  const absent = Array.from({ length: 300 }, (_, i) => BigInt(1_000 + i));
  const results = await Promise.allSettled(absent.map((id) => opened.store.delete(id, keyed("shared"))));
  expect(results).toEqual(absent.map(() => missing));
  await expect(opened.store.delete(1n, keyed("shared"))).resolves.toBe(true);
});

describe("a deletion with a key that another process uses concurrently", () => {
  test.each(
    // oxfmt-ignore
    [
      ["gets the outcome of a committed deletion of the same plant", "1", "COMMIT", deleted, undefined],
      ["is refused after a committed deletion of another plant", "2", "COMMIT", taken, undefined],
      ["deletes the plant after a rollback for the same plant", "1", "ROLLBACK", deleted, undefined],
      ["deletes the plant after a rollback for another plant", "2", "ROLLBACK", deleted, undefined],
      // The first SQLSTATE is for the other process's statement.
      ["gets the outcome of a committed deletion even after refused retries", "1", "COMMIT", deleted,
        ["", "40003", "P0001"]],
    ],
  )("%s", async (_name, statement, end, results, sqlStates) => {
    await using opened = await openPlants(3);
    if (sqlStates !== undefined) await failAttempts(opened.url, "DELETE ON plants", sqlStates);
    const sql = `BEGIN; DELETE FROM plants WHERE id = ${statement}; ${recordSql(Number(statement), "key")}`;
    const other = await openClient(opened.url, sql);
    const ended = Promise.allSettled([opened.store.delete(1n, keyed("key"))]);
    await expect.poll(() => opened.store.waiting?.forLock).toBe(1);
    await other.query(end);
    expect(await ended).toEqual([results]);
    await other.end();
    expect(await column(opened.url, "SELECT count(*) FROM deletions")).toEqual(["1"]);
  });

  test("gets the other process's outcome after waiting for the locked plant", async () => {
    await using opened = await openPlants(2);
    const other = await openClient(opened.url, `BEGIN; DELETE FROM plants WHERE id = 1; ${recordSql(1, "key")}`);
    // If the machine stalls for long, the deletion fails with Unavailable and nothing was done, so it is repeated.
    const askUntilTold = (key: string): Promise<boolean> =>
      opened.store.delete(1n, keyed(key)).catch(() => askUntilTold(key));
    const requested = ["key", "another"].map(askUntilTold);
    await expect.poll(() => opened.store.waiting?.forLock).toBe(2);
    await expect(opened.store.delete(2n, keyed("free"))).resolves.toBe(true);
    await other.query("COMMIT");
    expect(await Promise.allSettled(requested)).toEqual([deleted, missing]);
    await other.end();
  });

  test("is performed once when several stores receive it", async () => {
    await using opened = await openPlants(200);
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url: opened.url })));
    stores.push(opened.store);
    const ids = Array.from({ length: 100 }, (_, i) => BigInt(i + 1));
    const deletions = stores.flatMap((store) => ids.map((id) => store.delete(id, keyed(`same-${String(id)}`))));
    expect((await Promise.all(deletions)).filter((isDeleted) => !isDeleted)).toEqual([]);
    // Each process deletes a different plant.
    const deleteNew = (store: (typeof stores)[number], i: number) =>
      Promise.allSettled(Array.from({ length: 25 }, (_, n) => store.delete(BigInt(101 + 25 * i + n), keyed(`n-${n}`))));
    const different = await Promise.all(stores.map(deleteNew));
    for (let n = 0; n < 25; n++) {
      expect(different.map((results) => results[n]).filter((one) => one?.status === "fulfilled")).toEqual([deleted]);
      const rejected = different.map((results) => results[n]).filter((one) => one?.status === "rejected");
      expect(rejected).toEqual([taken, taken, taken]);
    }
    await Promise.all(stores.slice(0, 3).map((store) => store.close()));
    expect(await column(opened.url, "SELECT count(*) FROM plants")).toEqual(["75"]);
    expect(await column(opened.url, "SELECT count(DISTINCT idempotency_key) FROM deletions")).toEqual(["125"]);
  });
});

describe("a batch with keys and a lost response", () => {
  test("reports the actual outcome to each caller", async () => {
    await using opened = await openPlants(6);
    await runSql(opened.url, `${recordSql(9, "old")}; ${recordSql(5, "restored")}`);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const session = new Session(readServerUrl(opened.url.replace(server.socketFolder, proxy.socketFolder)));
    const { run, results } = batchOf(
      [1n, keyed("a")],
      [1n, keyed("b")],
      [1n, keyed("a")],
      [2n, deleteCall()],
      [2n, keyed("c")],
      [3n, keyed("d")],
      [9n, keyed("old")],
      [9n, keyed("e")],
    );
    const wasCut = proxy.cutNext("before-reply");
    const ended = run(session);
    await wasCut;
    await ended;
    expect(await results).toEqual([deleted, missing, deleted, deleted, missing, deleted, deleted, missing]);
    await session.close();
    expect(await column(opened.url, plantsSql)).toEqual(["4", "5", "6"]);
    expect(await column(opened.url, keysSql)).toEqual(["1 a", "2 -", "3 d", "5 restored", "9 old"]);
  });

  test("does not retry a deletion that its key settled", async () => {
    await using opened = await openPlants(1);
    await runSql(opened.url, recordSql(9, "old"));
    await using proxy = await startCuttingProxy(server.socketFolder);
    await failAttempts(opened.url, "DELETE ON plants", ["", "P0001"]);
    const session = new Session(readServerUrl(opened.url.replace(server.socketFolder, proxy.socketFolder)));
    void proxy.cutNext("before-reply");
    const { run, results } = batchOf([9n, keyed("old")], [1n, deleteCall()]);
    await expect(run(session)).resolves.toEqual([]);
    expect(await results).toEqual([deleted, deleted]);
    await session.close();
  });

  test("does not assign a cancelled call's deletion to another caller", async () => {
    await using opened = await openPlants(3);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const session = new Session(readServerUrl(opened.url.replace(server.socketFolder, proxy.socketFolder)));
    const gone = new AbortController();
    const context = { signal: gone.signal };
    const { run, results } = batchOf(
      [1n, keyed("a", { context })],
      [1n, deleteCall()],
      [2n, deleteCall({ signal: gone.signal })],
      [2n, keyed("b")],
      [3n, keyed("c")],
    );
    const wasCut = proxy.cutNext("before-reply");
    const ended = run(session);
    await wasCut;
    gone.abort("gone");
    await ended;
    const failure = { status: "rejected", reason: "gone" };
    expect(await results).toEqual([failure, missing, failure, missing, deleted]);
    await session.close();
    // The cancelled call is repeated with its key.
    await expect(opened.store.delete(1n, keyed("a"))).resolves.toBe(true);
    expect(await column(opened.url, keysSql)).toEqual(["1 a", "2 -", "3 c"]);
  });
});
