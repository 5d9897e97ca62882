import { Code, ConnectError } from "@connectrpc/connect";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { openSqliteDatabase } from "../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/store.ts";
import { retryIntervalMs } from "../../../src/stores/store-health.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { refusalOf } from "../../support/plants/refusal.ts";
import { addPlants, plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";

const run = promisify(execFile);

describePlantStore(async (plants) => {
  const folder = createTempFolder();
  const file = folder.file("plants.db");
  const store = await openSqliteStore({ file, migrates: true });
  addPlants(file, plants);
  return {
    store,
    plants: () => plantsIn(file),
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
});

describe("an SQLite store", () => {
  test("has the same plants after a restart", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const first = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    await first.delete(2n, deleteCall());
    await first.close();
    const second = await openSqliteStore({ file });
    await expect(second.delete(2n, deleteCall())).resolves.toBe(false);
    await expect(second.delete(3n, deleteCall())).resolves.toBe(true);
    await second.close();
    expect(plantsIn(file)).toEqual([1n]);
  });

  test("reports its queue limit, and no deletions that wait for a lock", async () => {
    using folder = createTempFolder();
    const store = await openSqliteStore({ file: folder.file("plants.db"), migrates: true });
    expect(store.waiting).toEqual({ forBatch: 0, forBatchMax: 16_384, forLock: 0 });
    await store.close();
  });

  test("is filled only when it is created, not when it has become empty", async () => {
    using folder = createTempFolder();
    const options = { file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } };
    const first = await openSqliteStore(options);
    await Promise.all([1n, 2n].map((id) => first.delete(id, deleteCall())));
    await first.close();
    const second = await openSqliteStore(options);
    await second.close();
    expect(plantsIn(options.file)).toEqual([]);
  });

  test("records who deleted which plant in the same commit, once per deletion", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    const before = Date.now();
    await store.delete(2n, deleteCall({ subject: "ann", requestId: "r-1" }));
    await store.delete(2n, deleteCall({ subject: "bob", requestId: "r-2" }));
    await store.delete(3n, deleteCall({ subject: "bob", requestId: "r-3" }));
    await store.close();
    const rows = readSqlite(file, "SELECT * FROM deletions ORDER BY seq");
    expect(rows).toMatchObject([
      { plant_id: 2n, subject: "ann", request_id: "r-1", batch: 1n },
      { plant_id: 3n, subject: "bob", request_id: "r-3", batch: 3n },
    ]);
    for (const { deleted_at } of rows) {
      expect(Number(deleted_at)).toBeGreaterThanOrEqual(before);
      expect(Number(deleted_at)).toBeLessThanOrEqual(Date.now());
    }
  });

  test("refuses deletions beyond its queue limit, keeps those plants, and returns when to retry", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 18_000n } });
    const results = await Promise.all(
      Array.from({ length: 18_000 }, (_, i) =>
        store.delete(BigInt(i + 1), deleteCall()).catch((reason: unknown) => ConnectError.from(reason)),
      ),
    );
    await store.close();
    const refused = results.filter((outcome) => outcome instanceof ConnectError);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) {
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
      expect(error.metadata.get("retry-after")).toBe("1");
    }
    expect(plantsIn(file)).toEqual(results.flatMap((outcome, i) => (outcome === true ? [] : [BigInt(i + 1)])));
  });

  test("does not delete for a call that is cancelled while queued", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    const controller = new AbortController();
    const first = store.delete(1n, deleteCall());
    const failure = store.delete(2n, deleteCall({ signal: controller.signal }));
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(failure).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(first).resolves.toBe(true);
    await store.close();
    expect(plantsIn(file)).toEqual([2n, 3n]);
  });

  test("acknowledges no deletion that a failed write has lost, and stops writing", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 5_000n } }).close();
    const entry = new URL("../../support/plants/delete-with-small-files.ts", import.meta.url).pathname;
    // The limit is in blocks of 512 or 1,024 bytes, so files are limited to half a megabyte or a megabyte.
    const { stdout } = await run("sh", [
      "-c",
      'ulimit -f 1000; exec "$@"',
      "sh",
      process.execPath,
      entry,
      file,
      "5000",
    ]);
    const { results, problem } = JSON.parse(stdout);
    expect(problem).toBe(`${file}: reading from or writing to the disk failed`);
    const acknowledged = results.flatMap((outcome: unknown, i: number) => (outcome === true ? [BigInt(i + 1)] : []));
    expect(acknowledged.length).toBeGreaterThan(0);
    expect(acknowledged.length).toBeLessThan(5_000);
    const remaining = new Set(plantsIn(file));
    expect(acknowledged.filter((id: bigint) => remaining.has(id))).toEqual([]);
    // The batch whose commit has failed may be in the file after a restart; deletions queued after it were not sent.
    const refused = results.filter((outcome: unknown) => outcome !== true);
    const inDoubt = refused.filter((message: string) => message.includes("outcome of the deletion is unknown"));
    expect(inDoubt).toHaveLength(1_024);
    expect(refused.slice(1_024)).toEqual(
      Array(5_000 - acknowledged.length - 1_024).fill("[unavailable] the plant store cannot delete at the moment"),
    );
  });

  test("sends no queued deletions after a failed batch", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 4n } });
    const other = new DatabaseSync(file);
    other.exec("CREATE TRIGGER fail AFTER DELETE ON plants WHEN OLD.id = 1 BEGIN SELECT json('no JSON'); END");
    other.close();
    // The first is sent alone, and the others wait.
    const results = await Promise.allSettled([1n, 2n, 3n, 4n].map((id) => store.delete(id, deleteCall())));
    const refused = { rawMessage: "the plant store cannot delete at the moment", code: Code.Unavailable };
    expect(results).toEqual(results.map(() => ({ status: "rejected", reason: expect.objectContaining(refused) })));
    expect(plantsIn(file)).toEqual([1n, 2n, 3n, 4n]);
    await store.close();
  });

  test("waits for the transaction of another process", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const result = store.delete(1n, deleteCall());
    const insert = other.prepare("INSERT INTO plants VALUES (?)");
    for (let id = 100; id < 50_000; id++) insert.run(id);
    other.exec("COMMIT");
    other.close();
    await expect(result).resolves.toBe(true);
    expect(store.problem).toBeUndefined();
    await store.close();
  });

  test("reports why its thread failed", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
    const [thread] = await started;
    // An invalid request without a batch, which the thread receives before the next request.
    thread.postMessage({ kind: "deleteBatch" });
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({
      errorCode: "ERR_OUTCOME_UNKNOWN",
      rawMessage: "the outcome of the deletion is unknown; repeating the request is safe",
    });
    expect(store.problem).toMatch(/plants\.db: the storage thread failed: TypeError: /);
    await store.close();
    expect(plantsIn(file)).toHaveLength(9);
  });

  test("rejects calls when its thread exits, and accepts no more", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const batches: unknown[] = [];
    const onBatch = (calls: readonly unknown[]) => (error?: unknown) => batches.push(calls.length, error);
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n }, onBatch });
    const [thread] = await started;
    // The first waits for the lock, and the second for the first.
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const results = [1n, 2n].map((id) => refusalOf(store.delete(id, deleteCall())));
    await thread.terminate();
    const refused = await Promise.all(results);
    expect(refused.map(({ rawMessage }) => rawMessage)).toEqual([
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the plant store cannot delete at the moment",
    ]);
    expect(refused.map(({ metadata }) => metadata.get("retry-after"))).toEqual(["1", "1"]);
    expect(store.problem).toBe(`${file}: the storage thread has exited`);
    await expect(store.delete(3n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    // Deletions that are refused immediately are not sent as a batch.
    expect(batches).toEqual([1, expect.any(ConnectError), 1, expect.any(ConnectError)]);
    await store.close();
    other.close();
    expect(plantsIn(file)).toHaveLength(9);
  });

  test("refuses to delete from a damaged file, and reports the problem", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
    const bytes = readFileSync(file);
    // Everything after the pages of the schema.
    bytes.fill(0xa5, 7 * 4_096);
    writeFileSync(file, bytes);
    const store = await openSqliteStore({ file });
    await expect(store.delete(10_000n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: the file is damaged`);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await store.close();
  });

  test.each([
    { name: "moved", remove: (file: string) => renameSync(file, `${file}.moved`) },
    { name: "deleted", remove: (file: string) => rmSync(file) },
    { name: "replaced", remove: (file: string) => renameSync(`${file}.copy`, file) },
    {
      name: "replaced by a broken link",
      remove: (file: string) => {
        rmSync(file);
        symlinkSync(file, file);
      },
    },
  ])("acknowledges no deletion after its file was $name", async ({ remove }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    backUp(file, `${file}.copy`);
    remove(file);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: the file was moved, replaced or deleted`);
    await store.close();
  });

  test.each([
    {
      name: "another table references",
      sql: "CREATE TABLE beds (plant INTEGER REFERENCES plants (id)); INSERT INTO beds VALUES (5), (12)",
    },
    {
      name: "another table references with a deferred constraint",
      sql: `CREATE TABLE beds (plant INTEGER REFERENCES plants (id) DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO beds VALUES (5), (12)`,
    },
    ...["ABORT", "FAIL", "ROLLBACK"].map((kind) => ({
      name: `a trigger protects with ${kind}`,
      sql: `CREATE TRIGGER keep AFTER DELETE ON plants WHEN OLD.id IN (5, 12)
              BEGIN SELECT RAISE(${kind}, 'not this one'); END`,
    })),
    {
      name: "a trigger does not record",
      sql: `CREATE TRIGGER keep BEFORE INSERT ON deletions WHEN NEW.plant_id IN (5, 12)
              BEGIN SELECT RAISE(ABORT, 'not this one'); END`,
    },
  ])("refuses to delete a plant that $name, but not other plants at the same time", async ({ sql }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 0n, last: 19n } });
    const other = new DatabaseSync(file);
    other.exec(sql);
    other.close();
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    const results = await Promise.allSettled([...ids, 99n].map((id) => store.delete(id, deleteCall())));
    const refused = { status: "rejected", reason: expect.objectContaining({ code: Code.FailedPrecondition }) };
    expect(results).toEqual([
      ...ids.map((id) => (id === 5n || id === 12n ? refused : { status: "fulfilled", value: true })),
      { status: "fulfilled", value: false },
    ]);
    expect(store.problem).toBeUndefined();
    expect(plantsIn(file)).toEqual([5n, 12n]);
    expect(readSqlite(file, "SELECT count(*) AS rows FROM deletions").map(({ rows }) => Number(rows))).toEqual([18]);
    await store.close();
  });

  test("resolves the deletions of a committed part of a batch when another part fails", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 6n } });
    const other = new DatabaseSync(file);
    other.exec(`
      CREATE TRIGGER keep AFTER DELETE ON plants WHEN OLD.id = 4 BEGIN SELECT RAISE(FAIL, 'not this one'); END;
      CREATE TRIGGER fail AFTER DELETE ON plants WHEN OLD.id = 6 BEGIN SELECT json('no JSON'); END`);
    other.close();
    // The first is sent alone, and the others share a batch.
    const results = await Promise.allSettled([1n, 2n, 3n, 4n, 5n, 6n].map((id) => store.delete(id, deleteCall())));
    expect(results).toEqual([
      ...[1, 2, 3].map(() => ({ status: "fulfilled", value: true })),
      { status: "rejected", reason: expect.objectContaining({ code: Code.FailedPrecondition }) },
      ...[5, 6].map(() => ({ status: "rejected", reason: expect.objectContaining({ code: Code.Unavailable }) })),
    ]);
    expect(store.problem).toBe(`${file}: malformed JSON`);
    expect(plantsIn(file)).toEqual([4n, 5n, 6n]);
    expect(readSqlite(file, "SELECT count(*) AS rows FROM deletions")).toEqual([{ rows: 3n }]);
    await store.close();
  });

  test("shrinks its log after a long export", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const plants = 30_000n;
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 0n, last: plants - 1n } });
    const logMib = (): number => statSync(`${file}-wal`).size / 2 ** 20;
    // Records of 2 KiB, so that few deletions fill the log.
    const call = deleteCall({ subject: "s".repeat(1_024), requestId: "r".repeat(1_024) });
    // If the machine is busy, the store does not keep up and refuses some deletions, which are retried.
    const deleteUntilTaken = (id: bigint): Promise<unknown> =>
      store.delete(id, call).catch(async (reason: unknown) => {
        expect(reason).toMatchObject({ code: Code.ResourceExhausted });
        await new Promise(setImmediate);
        return await deleteUntilTaken(id);
      });
    const deleteMany = (from: number): Promise<unknown> =>
      Promise.all(Array.from({ length: 5_000 }, (_, i) => deleteUntilTaken(BigInt(from + i))));
    await using database = await openSqliteDatabase(file);
    for await (const ids of database.exportPlants()) {
      expect(ids).toHaveLength(10_000);
      for (const from of [0, 5_000, 10_000]) await deleteMany(from);
      break;
    }
    expect(logMib()).toBeGreaterThan(32);
    await deleteMany(15_000);
    await deleteMany(20_000);
    expect(logMib()).toBeLessThan(17);
    await store.close();
  });

  test("stops writing while another process holds the lock, and then resumes by itself", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n }, lockTimeoutMs: 50 });
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.Unavailable });
    expect(refused.metadata.get("retry-after")).toBe("1");
    expect(store.problem).toBe(`${file}: another process holds the lock on the file`);
    expect(store.needsRestart).toBe(false);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    other.exec("ROLLBACK");
    other.close();
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
  });
});

// See docs/how-to/operations.md: the server exits with code 74, or waits for an operator.
describe("an SQLite store with a permanent problem", () => {
  test.each<{
    name: string;
    isSpoiltBefore?: boolean;
    spoil: (file: string) => void;
    problem: string;
    needsRestart: boolean;
  }>([
    {
      name: "its file is damaged",
      isSpoiltBefore: true,
      spoil: (file) => {
        const bytes = readFileSync(file);
        // All but the first page of each table and index.
        writeFileSync(file, bytes.fill(0xff, 8 * 4_096));
      },
      problem: "the file is damaged",
      needsRestart: true,
    },
    {
      name: "its file is overwritten",
      spoil: (file) => writeFileSync(file, readFileSync(file)),
      problem: "another program, such as cp, wrote to the file; run `plantstore restore` with a backup",
      needsRestart: false,
    },
    {
      name: "its -shm file is deleted",
      spoil: (file) => rmSync(`${file}-shm`),
      problem: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
      needsRestart: true,
    },
    {
      name: "its log is deleted and was copied into the file",
      spoil: (file) => rmSync(`${file}-wal`),
      problem: "its write-ahead log was moved, replaced or deleted; every acknowledged deletion is in the file",
      needsRestart: true,
    },
    {
      name: "its log is replaced and lost",
      spoil: (file) => {
        rmSync(`${file}-wal`);
        writeFileSync(`${file}-wal`, "");
      },
      problem:
        "its write-ahead log was moved, replaced or deleted; a restart without it may undo acknowledged deletions",
      needsRestart: false,
    },
    {
      name: "its file is moved",
      spoil: (file) => renameSync(file, `${file}.moved`),
      problem: "the file was moved, replaced or deleted",
      needsRestart: false,
    },
  ])(
    "because $name: needsRestart is $needsRestart",
    async ({ isSpoiltBefore = false, spoil, problem, needsRestart }) => {
      using folder = createTempFolder();
      const file = folder.file("plants.db");
      await (await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 5_000n } })).close();
      if (isSpoiltBefore) spoil(file);
      const store = await openSqliteStore({ file });
      expect(store.needsRestart).toBe(false);
      if (!isSpoiltBefore) spoil(file);
      await refusalOf(store.delete(4_000n, deleteCall()));
      expect({ problem: store.problem, needsRestart: store.needsRestart }).toEqual({
        problem: `${file}: ${problem}`,
        needsRestart,
      });
      await store.close();
    },
  );

  test("because its thread has exited causes no unhandled rejection, even during a request", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const lockTimeoutMs = 500;
    const store = await openSqliteStore({ file, migrates: true, lockTimeoutMs });
    const [thread] = await started;
    using other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    await refusalOf(store.delete(1n, deleteCall()));
    const faults: unknown[] = [];
    const onFault = (fault: unknown): void => void faults.push(fault);
    process.on("unhandledRejection", onFault);
    // The thread is terminated in the middle of the next check, which also waits for the lock.
    await delay(retryIntervalMs + lockTimeoutMs / 2);
    await thread.terminate();
    await delay(0);
    process.off("unhandledRejection", onFault);
    expect({ faults, problem: store.problem }).toEqual({
      faults: [],
      problem: `${file}: the storage thread has exited`,
    });
    await store.close();
  });

  test("because its thread has exited needs a restart", async () => {
    using folder = createTempFolder();
    const started = once(process, "worker");
    const store = await openSqliteStore({ file: folder.file("plants.db"), migrates: true });
    const [thread] = await started;
    await thread.terminate();
    await expect.poll(() => store.problem).toMatch(/: the storage thread has exited$/);
    expect(store.needsRestart).toBe(true);
    await store.close();
  });
});
