import { Code } from "@connectrpc/connect";
import { once } from "node:events";
import { copyFileSync, linkSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { retryIntervalMs } from "../../../src/stores/contract/store-health.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { fileCheckIntervalMs, openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { replyTimeoutMs } from "../../../src/stores/sqlite/storage-thread.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { plantsIn, readSqlite, runSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder } from "@protoport/testing/process";

const rejected = (code: Code, cause: string) => ({ status: "rejected", reason: { code, cause } });

describe("an SQLite store", () => {
  test("is filled only when it is created, not when it becomes empty", async () => {
    using folder = createTempFolder();
    const options = { file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } };
    const first = await openSqliteStore(options);
    await Promise.all([1n, 2n].map((id) => first.delete(id, deleteCall())));
    await first.close();
    await (await openSqliteStore(options)).close();
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
      { plant_id: 3n, subject: "bob", request_id: "r-3", batch: 2n },
    ]);
    for (const { deleted_at } of rows) {
      expect(Number(deleted_at)).toBeGreaterThanOrEqual(before);
      expect(Number(deleted_at)).toBeLessThanOrEqual(Date.now());
    }
  });

  test("reports why its thread failed", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
    const [thread] = await started;
    // An invalid request, which the thread receives before the next request.
    thread.postMessage({ file });
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({
      errorCode: "ERR_OUTCOME_UNKNOWN",
      rawMessage: "the outcome of the deletion is unknown; repeating the request is safe",
    });
    expect(store.problem).toMatch(/plants\.db: the storage thread failed: TypeError: rows\.map is not a function/);
    await store.close();
    expect(plantsIn(file)).toHaveLength(9);
  });

  test("resolves the committed deletions of a batch that fails in part", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 6n } });
    await using _ = { [Symbol.asyncDispose]: () => store.close() };
    const other = new DatabaseSync(file);
    // Plant 2's trigger fails, plant 4 is protected, and deleting plant 6 finds a damaged index.
    other.exec(`
      CREATE TABLE documents (text);
      CREATE VIRTUAL TABLE damaged USING fts5 (text, content = 'documents');
      INSERT INTO damaged (rowid, text) VALUES (1, 'missing');
      CREATE TRIGGER fail AFTER DELETE ON plants WHEN OLD.id = 2 BEGIN SELECT json('no JSON'); END;
      CREATE TRIGGER keep AFTER DELETE ON plants WHEN OLD.id = 4 BEGIN SELECT RAISE(FAIL, 'not this one'); END;
      CREATE TRIGGER damage AFTER DELETE ON plants WHEN OLD.id = 6
        BEGIN INSERT INTO damaged (damaged, rank) VALUES ('integrity-check', 1); END`);
    other.close();
    const deleted = { status: "fulfilled", value: true };
    const damaged = rejected(Code.Unavailable, `${file}: the file is damaged`);
    expect(
      await Promise.allSettled([1n, 2n, 3n, 4n, 5n, 6n].map((id) => store.delete(id, deleteCall()))),
    ).toMatchObject([
      deleted,
      rejected(Code.Unavailable, "malformed JSON"),
      deleted,
      rejected(Code.FailedPrecondition, "not this one"),
      damaged,
      damaged,
    ]);
    expect(store.problem).toBe(`${file}: the file is damaged`);
    expect(plantsIn(file)).toEqual([2n, 4n, 5n, 6n]);
    expect(readSqlite(file, "SELECT count(*) AS rows FROM deletions")).toEqual([{ rows: 2n }]);
  });

  test("refuses deletions that waited for the check of a damaged file", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    {
      const plantsWhenCreated = { first: 1n, last: 5_000n };
      using crashing = openDatabase({ file: folder.file("crashing.db"), plantsWhenCreated });
      crashing.exec("PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM plants WHERE id = 1");
      for (const end of ["", "-wal"]) copyFileSync(folder.file(`crashing.db${end}`), `${file}${end}`);
    }
    // The last page has plants that the log does not change.
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xa5, bytes.length - 4_096));
    const store = await openSqliteStore({ file });
    await using _ = { [Symbol.asyncDispose]: () => store.close() };
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE" });
    expect(store.problem).toMatch(/plants\.db: .* the file is damaged/);
  });

  test("does not copy a truncated log into its file when it closes", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
    let before: Buffer;
    {
      await using _ = { [Symbol.asyncDispose]: () => store.close() };
      await store.delete(1n, deleteCall());
      before = readFileSync(file);
      truncateSync(`${file}-wal`, readFileSync(`${file}-wal`).length - 1);
      await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE" });
    }
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

test("a store whose thread does not reply fails its calls, and recovers", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  const store = await openSqliteStore({ file, lockTimeoutMs: 10_000, plantsWhenCreated: { first: 1n, last: 9n } });
  const other = new DatabaseSync(file);
  /** Deletes a plant while the thread waits for the lock, as it would wait for a disk. */
  const deleteUnanswered = async (id: bigint): Promise<void> => {
    const failed = expect(store.delete(id, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_OUTCOME_UNKNOWN" });
    await new Promise(setImmediate);
    vi.advanceTimersByTime(fileCheckIntervalMs);
    vi.advanceTimersByTime(replyTimeoutMs);
    await failed;
  };
  for (const id of [1n, 2n]) {
    other.exec("BEGIN IMMEDIATE");
    await deleteUnanswered(id);
    expect(store.problem).toBe(`${file}: the storage thread does not reply; the disk may hang`);
    other.exec("COMMIT");
    vi.advanceTimersByTime(retryIntervalMs);
    while (store.problem !== undefined) await new Promise(setImmediate);
    await expect(store.delete(id, deleteCall())).resolves.toEqual(expect.any(Boolean));
  }
  expect(plantsIn(file)).toEqual([3n, 4n, 5n, 6n, 7n, 8n, 9n]);
  // The last reply is late, and has a problem that only a restart fixes.
  other.exec("BEGIN IMMEDIATE; CREATE TRIGGER bad BEFORE DELETE ON plants BEGIN DELETE FROM missing; END");
  await deleteUnanswered(3n);
  other.exec("COMMIT");
  vi.advanceTimersByTime(retryIntervalMs);
  while (!store.problem?.includes("no such table: main.missing")) await new Promise(setImmediate);
  expect(store.needsRestart).toBe(true);
  await store.close();
  other.close();
});

test("a store is ready again once its schema is supported, or its move is undone", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } });
  for (const [id, problem, cause, repair] of [
    [1n, "its schema has version 99", "PRAGMA user_version = 99", "PRAGMA user_version = 1"],
    [
      2n,
      "it was moved to there: use that store",
      "ALTER TABLE plants RENAME TO moved_plants; UPDATE plantstore_schema SET moved_to = 'id id there'",
      "ALTER TABLE moved_plants RENAME TO plants; UPDATE plantstore_schema SET moved_to = NULL",
    ],
  ] as const) {
    expect(store.file?.hasSecondName).toBe(id === 2n);
    runSqlite(file, cause);
    if (id === 1n) {
      linkSync(file, folder.file("second.db"));
      vi.advanceTimersByTime(fileCheckIntervalMs);
    } else await expect(store.delete(id, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE" });
    while (store.problem === undefined) await new Promise(setImmediate);
    expect([store.problem, store.needsRestart]).toEqual([expect.stringContaining(problem), false]);
    runSqlite(file, repair);
    vi.advanceTimersByTime(retryIntervalMs);
    while (store.problem !== undefined) await new Promise(setImmediate);
    await expect(store.delete(id, deleteCall())).resolves.toBe(true);
  }
  await store.close();
});
