import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../../src/plantstore/plants/sqlite/database.ts";
import { makeLeftLogDurable } from "../../../../src/plantstore/plants/sqlite/left-log.ts";
import { lockTimeoutMsDefault } from "../../../../src/plantstore/plants/sqlite/transaction.ts";
import { plantsIn } from "../../../support/plants/sqlite-file.ts";
import { createTempFolder } from "../../../support/process/temp-folder.ts";

const exclusive = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT";

/** Leaves a file of two plants as a crash would: they are in its log alone, which has this many more bytes. */
function leaveLog(file: string, bytes: number): void {
  const crashing = `${file}.crashing`;
  openDatabase({ file: crashing }).close();
  using db = openDatabase({ file: crashing });
  db.exec(`
    PRAGMA wal_autocheckpoint = 0;
    INSERT INTO plants VALUES (1), (2);
    CREATE TABLE other AS SELECT randomblob(${bytes}) AS bytes`);
  for (const end of ["", "-wal"]) copyFileSync(`${crashing}${end}`, `${file}${end}`);
}

// What a power loss leaves of such a log is in test/crash/sqlite-power-loss.test.ts.
describe("a log that an earlier process has left", () => {
  test("is written again as it is, also when it is long", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 9 * 2 ** 20);
    const log = readFileSync(`${file}-wal`);
    makeLeftLogDurable(file);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    expect(folder.open()).toEqual([]);
    expect(plantsIn(file)).toEqual([1n, 2n]);
  });

  test.each([
    { name: "opened by its name", path: "plants.db", lock: "BEGIN IMMEDIATE" },
    { name: "opened by a link", path: "link.db", lock: "BEGIN IMMEDIATE" },
    { name: "and nobody else may read", path: "plants.db", lock: exclusive },
  ])("is not touched while another process may write to it: $name", ({ path, lock }) => {
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
    { name: "keeps everybody out", lock: exclusive },
  ])("waits for another process that $name", async ({ lock }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    leaveLog(file, 1);
    // An opening waits without an event loop, so that the lock has to be another thread's.
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
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

  test("is not passed over when it cannot be read", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file }).close();
    mkdirSync(`${file}-wal`);
    expect(() => openDatabase({ file })).toThrow(/^cannot open .*plants\.db: EISDIR/);
  });
});
