import { Code } from "@connectrpc/connect";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { checkSqliteStore } from "../../../src/stores/sqlite/plant-database.ts";
import { repairLeftoverLog } from "../../../src/stores/sqlite/leftover-log.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { lockTimeoutMsDefault } from "../../../src/stores/sqlite/transaction.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

const exclusive = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT";

/** Creates a file as after a crash. Two plants are only in the log, which has this many additional bytes. */
function leaveLog(file: string, bytes: number): void {
  const crashing = `${file}.crashing`;
  openDatabase({ file: crashing, migrates: true }).close();
  using db = openDatabase({ file: crashing });
  db.exec(`
    PRAGMA wal_autocheckpoint = 0;
    INSERT INTO plants VALUES (1), (2);
    CREATE TABLE other AS SELECT randomblob(${bytes}) AS bytes`);
  for (const end of ["", "-wal"]) copyFileSync(`${crashing}${end}`, `${file}${end}`);
}

/** Creates a file's backup next to a later log of the file. */
function leaveMixture(folder: TempFolder, file: string): void {
  const crashing = folder.file("crashing.db");
  openDatabase({ file: crashing, plantsWhenCreated: { first: 1n, last: 500n } }).close();
  copyFileSync(crashing, file);
  using db = openDatabase({ file: crashing });
  const add = (first: number, last: number): void =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last})
             INSERT INTO plants SELECT -i FROM n`);
  add(1, 5_000);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  add(5_001, 6_000);
  copyFileSync(`${crashing}-wal`, `${file}-wal`);
}

/** Runs SQL on a connection of another process, which stays open. */
const openAndRun = (sql: string) => (file: string) => {
  const db = new DatabaseSync(file);
  db.exec(sql);
  return db;
};

// test/suites/crash/sqlite-power-loss.test.ts covers such a log after a power loss.
describe("a leftover log", () => {
  test("is rewritten unchanged, even when it is long", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 9 * 2 ** 20);
    const log = readFileSync(`${file}-wal`);
    repairLeftoverLog(file);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    expect(folder.open()).toEqual([]);
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });

  test.each([
    { name: "of a file opened by path", path: "plants.db", lock: "BEGIN IMMEDIATE" },
    { name: "of a file opened through a link", path: "link.db", lock: "BEGIN IMMEDIATE" },
    { name: "of a file with an exclusive lock", path: "plants.db", lock: exclusive },
  ])("$name is not rewritten while another process may write to it", ({ path, lock }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    symlinkSync(file, folder.file("link.db"));
    const other = new DatabaseSync(file);
    other.exec(lock);
    const options = { file: folder.file(path), lockTimeoutMs: 10 };
    const begunMs = performance.now();
    expect(() => openDatabase(options)).toThrow(/another process holds the lock on the file$/);
    expect(performance.now() - begunMs).toBeLessThan(lockTimeoutMsDefault);
    other.close();
    openDatabase(options).close();
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });

  test.each([
    { name: "writes", lock: "BEGIN IMMEDIATE" },
    { name: "has an exclusive lock", lock: exclusive },
  ])("is read only after another process that $name has closed the file", async ({ lock }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    // Opening blocks the event loop, so another thread must hold the lock.
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { DatabaseSync } from "node:sqlite";
      const db = new DatabaseSync(workerData);
      db.exec("${lock}");
      parentPort.postMessage("locked");
      setTimeout(() => db.close(), 200);`;
    const locking = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), { workerData: file });
    const ended = once(locking, "exit");
    await once(locking, "message");
    openDatabase({ file }).close();
    await ended;
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });

  test("prevents opening the file when it cannot be read", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, migrates: true }).close();
    mkdirSync(`${file}-wal`);
    expect(() => openDatabase({ file })).toThrow(/^cannot open .*plants\.db: EISDIR/);
  });

  // oxfmt-ignore
  const situations: readonly { name: string; prepare: (file: string) => Disposable | void; checks: number }[] = [
    { name: "without an index is checked", prepare: () => undefined, checks: 1 },
    { name: "with an index is checked", prepare: (file) => writeFileSync(`${file}-shm`, new Uint8Array(32_768)),
      checks: 1 },
    { name: "that another process reads is checked", prepare: openAndRun("SELECT count(*) FROM plants"), checks: 1 },
    { name: "to which another process commits is not checked", prepare: openAndRun("DELETE FROM plants"), checks: 0 },
    { name: "without content is not checked", prepare: (file) => truncateSync(`${file}-wal`), checks: 0 },
    { name: "of an empty file is not checked", prepare: (file) => truncateSync(file), checks: 0 },
  ];

  test.each(situations)("$name when its file is opened", ({ prepare, checks }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    using _ = prepare(file) ?? undefined;
    let checked = 0;
    repairLeftoverLog(file, undefined, () => checked++);
    expect(checked).toBe(checks);
  });

  test("is not copied into another file, and the error has advice", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveMixture(folder, file);
    const found = [readFileSync(file), readFileSync(`${file}-wal`)];
    const problem =
      /its write-ahead log belongs to another file, or the file is damaged \(.+\); stop the server, run "plantstore check", then start the server; run "plantstore restore" with a backup only if the check reports damage$/;
    expect(() => openDatabase({ file })).toThrow(problem);
    expect(() => checkSqliteStore(file)).toThrow(/plants\.db: the file is damaged \(.+\)$/);
    const store = await openSqliteStore({ file });
    const want = { code: Code.Unavailable, rawMessage: "the plant store cannot process the request at the moment" };
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject(want);
    const expected = [expect.stringMatching(problem), false, false];
    expect([store.problem, store.isChecking, store.needsRestart]).toEqual(expected);
    expect(store.problem).toMatch(/^\S+plants\.db: its write-ahead log/);
    await store.close();
    expect([readFileSync(file), readFileSync(`${file}-wal`)]).toEqual(found);
  });

  test("is not copied into another file while another process reads it", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveMixture(folder, file);
    const found = [readFileSync(file), readFileSync(`${file}-wal`)];
    const other = new DatabaseSync(file, { readOnly: true });
    other.exec("PRAGMA user_version");
    expect(() => openDatabase({ file })).toThrow(/its write-ahead log belongs to another file/);
    other.close();
    expect([readFileSync(file), readFileSync(`${file}-wal`)]).toEqual(found);
  });

  test("delays deletions until the file's check is done", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    const store = await openSqliteStore({ file });
    expect(store.isChecking).toBe(true);
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    expect([store.problem, store.isChecking]).toEqual([undefined, false]);
    await store.close();
    expect(plantsIn(file)).toEqual([2n]);
  });

  test("blocks other writers while the file is checked", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    using other = new DatabaseSync(file, { timeout: 0 });
    using prepare = vi.spyOn(DatabaseSync.prototype, "prepare").mockImplementationOnce(() => {
      expect(() => other.exec("BEGIN IMMEDIATE")).toThrow("database is locked");
      return other.prepare("SELECT 'ok' AS quick_check");
    });
    repairLeftoverLog(file);
    expect(prepare).toHaveBeenCalled();
  });
});
