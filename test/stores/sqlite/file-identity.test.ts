import { Code } from "@connectrpc/connect";
import { copyFileSync, existsSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch, type BatchRow, withIdentityChecks } from "../../../src/stores/sqlite/delete-batch.ts";
import { FileIdentity } from "../../../src/stores/sqlite/file-identity.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { overwrite, plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

const logGone = "its write-ahead log was moved, replaced or deleted";
const saved = `${logGone}; every acknowledged deletion is in the file`;
const lost = `${logGone}; a restart without it may undo acknowledged deletions`;

// Each test case has a change to the log, the store's resulting problem, and the plants after a restart. The store
// contains plants 1 to 4, of which plant 1 was deleted. It writes nothing while another process may use the new log.
// oxfmt-ignore
const interferences: readonly (readonly [
  name: string, interfere: (file: string) => void, problem: string, remaining: readonly bigint[]
])[] = [
  ["deleted", (file) => rmSync(`${file}-wal`), saved, [2n, 3n, 4n]],
  ["deleted together with its index", (file) => ["wal", "shm"].forEach((end) => rmSync(`${file}-${end}`)), saved,
    [2n, 3n, 4n]],
  ["moved", (file) => renameSync(`${file}-wal`, `${file}.moved`), saved, [2n, 3n, 4n]],
  ["replaced", (file) => replaceWithEmpty(`${file}-wal`), lost, [1n, 2n, 3n, 4n]],
  ["replaced by a broken link", (file) => {
      rmSync(`${file}-wal`);
      symlinkSync(`${file}-wal`, `${file}-wal`);
    }, lost, [1n, 2n, 3n, 4n]],
];

function replaceWithEmpty(path: string): void {
  rmSync(path);
  writeFileSync(path, "");
}

/** Opens a copy of a file and its log, as a start after a crash would, and reads its plants. */
function plantsAfterRestart(file: string): bigint[] {
  const copy = `${file}.as-found`;
  copyFileSync(file, copy);
  try {
    copyFileSync(`${file}-wal`, `${copy}-wal`);
  } catch {
    // The log is missing or not readable.
  }
  return plantsIn(copy);
}

/** Creates a file with plants 1 to 4, all in the file itself, with an empty log. */
const createFile = (file: string) => openDatabase({ file, plantsWhenCreated: { first: 1n, last: 4n } }).close();

const batchOf = (id: bigint): BatchRow[] => [[id, "tester", "request-1", null]];

describe("an SQLite store", () => {
  test.each(interferences)(
    "stops writing if its log is %s while it runs",
    async (_name, interfere, problem, remaining) => {
      using folder = createTempFolder();
      const file = folder.file("plants.db");
      createFile(file);
      await using store = closing(await openSqliteStore({ file }));
      await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
      interfere(file);
      const want = { code: Code.Unavailable, rawMessage: "the plant store cannot process the request at the moment" };
      await expect(store.delete(2n, deleteCall())).rejects.toMatchObject(want);
      expect(store.problem).toBe(`${file}: ${problem}`);
      await expect(store.delete(3n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
      expect(plantsAfterRestart(file)).toEqual(remaining);
    },
  );

  test.each<
    [name: string, interfere: (file: string) => void, found: string, problem: string, plants: readonly bigint[]]
  >([
    ["file is moved", (file) => renameSync(file, `${file}.new`), ".new", "the file was moved, replaced", [3n, 4n]],
    ["log is truncated", (file) => truncateSync(`${file}-wal`), "", "was truncated or overwritten", [1n, 2n, 3n, 4n]],
    ["log is overwritten", (file) => overwrite(`${file}-wal`), "", "was truncated or overwritten", [1n, 2n, 3n, 4n]],
    [
      "file is moved and its log overwritten",
      (file) => {
        renameSync(file, `${file}.new`);
        overwrite(`${file}-wal`);
      },
      ".new",
      "was truncated or overwritten",
      [1n, 2n, 3n, 4n],
    ],
    [
      "-shm file is deleted and its log overwritten",
      (file) => {
        rmSync(`${file}-shm`);
        overwrite(`${file}-wal`);
      },
      "",
      "was truncated or overwritten",
      [1n, 2n, 3n, 4n],
    ],
  ])("reports at its close that its %s, and leaves a sound file", async (_name, interfere, found, problem, plants) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createFile(file);
    const store = await openSqliteStore({ file });
    for (const id of [1n, 2n]) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    interfere(file);
    await expect(store.close()).rejects.toThrow(problem);
    expect(readSqlite(`${file}${found}`, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(plantsIn(`${file}${found}`)).toEqual(plants);
  });

  test("stops writing if the log of its linked file is deleted", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createFile(file);
    symlinkSync(file, folder.file("link.db"));
    await using store = closing(await openSqliteStore({ file: folder.file("link.db") }));
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    expect(existsSync(folder.file("link.db-wal"))).toBe(false);
    rmSync(`${file}-wal`);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(plantsAfterRestart(file)).toEqual([2n, 3n, 4n]);
  });

  test.each([
    ["deleted", (locks: string) => rmSync(locks)],
    ["moved", (locks: string) => renameSync(locks, `${locks}.moved`)],
    ["replaced", replaceWithEmpty],
  ])("keeps all deletions if its -shm file is %s while it runs", async (_name, remove) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createFile(file);
    const store = await openSqliteStore({ file });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    remove(`${file}-shm`);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    const want = `${file}: its -shm file, which holds the locks, was moved, replaced or deleted; restart the server`;
    expect(store.problem).toBe(want);
    await store.close();
    expect(plantsAfterRestart(file)).toEqual([2n, 3n, 4n]);
  });

  test("copies a deleted log into the file after older readers finish", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createFile(file);
    await using store = closing(await openSqliteStore({ file }));
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT count(*) FROM plants");
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    rmSync(`${file}-wal`);
    const refused = expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    const count =
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n";
    reader.prepare(count).get();
    reader.close();
    await refused;
    expect(store.problem).toBe(`${file}: ${saved}`);
    expect(plantsAfterRestart(file)).toEqual([2n, 3n, 4n]);
  });

  test("reports a deleted log as lost while an older reader is active", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    createFile(file);
    const db = openDatabase({ file });
    const identity = new FileIdentity(file, db, 50);
    const deleteBatch = prepareDeleteBatch(db);
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT count(*) FROM plants");
    expect(deleteBatch(batchOf(1n))).toMatchObject({ outcomes: ["deleted"] });
    rmSync(`${file}-wal`);
    expect(identity.findProblem()).toEqual({ text: lost, isTemporary: false, needsOperator: true });
    reader.close();
    expect(identity.findProblem()).toEqual({ text: saved, isTemporary: false });
    identity.close();
  });

  test.each([
    { name: "its log", remove: (file: string) => rmSync(`${file}-wal`), problem: { text: saved, isTemporary: false } },
    {
      name: "its file",
      remove: (file: string) => renameSync(file, `${file}.moved`),
      problem: { text: "the file was moved, replaced or deleted", isTemporary: false, needsOperator: true },
    },
  ])("reports an unknown outcome when $name is removed right after a commit", ({ remove, problem }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    // A new file has no log yet.
    const db = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 4n } });
    const identity = new FileIdentity(file, db);
    const deleteWherever = prepareDeleteBatch(db);
    const deleteBatch = withIdentityChecks(identity, (batch) => {
      const result = deleteWherever(batch);
      remove(file);
      return result;
    });
    expect(deleteBatch(batchOf(1n))).toEqual({ problem, outcomes: ["unknown"] });
    // The next batch detects the removal before it writes.
    expect(deleteBatch(batchOf(2n))).toEqual({ problem, outcomes: ["unavailable"] });
    expect(db.prepare("SELECT id FROM plants").all()).toEqual([{ id: 2n }, { id: 3n }, { id: 4n }]);
    identity.close();
  });
});
