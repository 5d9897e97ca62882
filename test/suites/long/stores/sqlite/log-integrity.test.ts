import { Code } from "@connectrpc/connect";
import fs, {
  closeSync,
  copyFileSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
// oxfmt-ignore
import { prepareDeleteBatch, type BatchRow, withIdentityChecks
} from "../../../../../src/stores/sqlite/delete-batch.ts";
import { FileIdentity } from "../../../../../src/stores/sqlite/file-identity.ts";
import { openSqliteDatabase } from "../../../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { plantsIn, readSqlite } from "../../../../support/plants/sqlite-file.ts";
import { closing, createTempFolder, type TempFolder } from "@protoport/testing/process";

const cut = "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions";
/** The frame count's offset in the first header of a -shm file (sqlite.org/walformat.html). */
const framesAt = 16;

const plants = { first: 1n, last: 2_000n };

/** Creates a store in a folder, and `other.db`, a copy of it. Returns the store's path. */
function createStore(folder: TempFolder): string {
  const file = folder.file("plants.db");
  openDatabase({ file, plantsWhenCreated: plants }).close();
  copyFileSync(file, folder.file("other.db"));
  return file;
}

/** Changes to a file's log, of which `other` is an older copy. All keep the log's inode. */
// oxfmt-ignore
const changes: readonly { name: string; change: (file: string, other: string) => void }[] = [
  { name: "its log was truncated to zero bytes", change: (file) => truncateSync(`${file}-wal`) },
  { name: "the end was cut from its log",
    change: (file) => truncateSync(`${file}-wal`, statSync(`${file}-wal`).size - 1) },
  { name: "another log was copied over its log", change: (file, other) => {
      using db = new DatabaseSync(other);
      db.exec("PRAGMA journal_mode = WAL; CREATE TABLE other AS SELECT randomblob(1000000)");
      copyFileSync(`${other}-wal`, `${file}-wal`);
    } },
];

/** Changes the time stamps on a file and its log, as touch and programs that copy time stamps do. */
function touch(file: string): void {
  for (const [i, end] of ["", "-wal", "-shm"].entries()) utimesSync(`${file}${end}`, 1 + i, 1_000_000 + i);
}

const batchOf = (id: bigint): BatchRow[] => [[id, "tester", "request-1", null]];

describe("a store with a log that another program changes", () => {
  test.each(changes)("after $name, acknowledges no deletion", async ({ change }) => {
    using folder = createTempFolder();
    const file = createStore(folder);
    const store = await openSqliteStore({ file });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    change(file, folder.file("other.db"));
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: ${cut}`);
    expect(store.needsRestart).toBe(false);
    const [changed, log] = [readFileSync(file), readFileSync(`${file}-wal`)];
    await store.close();
    // A log that does not belong to the file would damage it.
    expect(readFileSync(file).equals(changed)).toBe(true);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    expect(folder.open()).toEqual([]);
  });

  test.each(changes)("reports an unknown outcome after $name during a commit", (row) => {
    using folder = createTempFolder();
    const file = createStore(folder);
    const db = openDatabase({ file });
    const identity = new FileIdentity(file, db);
    const deleteUnchecked = prepareDeleteBatch(db);
    let isChanged = false;
    const deleteBatch = withIdentityChecks(identity, (batch) => {
      const result = deleteUnchecked(batch);
      if (isChanged) row.change(file, folder.file("other.db"));
      return result;
    });
    expect(deleteBatch(batchOf(1n))).toMatchObject({ outcomes: ["deleted"] });
    isChanged = true;
    expect(deleteBatch(batchOf(2n))).toMatchObject({ outcomes: ["unknown"], problem: { text: cut } });
    expect(deleteBatch(batchOf(3n))).toMatchObject({ outcomes: ["unavailable"], problem: { text: cut } });
    identity.close();
    expect(folder.open()).toEqual([]);
  });

  test("detects that its log was truncated just before a commit", () => {
    using folder = createTempFolder();
    const file = createStore(folder);
    const db = openDatabase({ file });
    const identity = new FileIdentity(file, db);
    const deleteUnchecked = prepareDeleteBatch(db);
    const deleteBatch = withIdentityChecks(identity, (rows) => {
      if (rows[0]?.[0] === 2n) truncateSync(`${file}-wal`);
      return deleteUnchecked(rows);
    });
    expect(deleteBatch(batchOf(1n))).toMatchObject({ outcomes: ["deleted"] });
    // This batch's frames are appended after the old ones, so that the log has the expected length.
    expect(deleteBatch(batchOf(2n))).toMatchObject({ outcomes: ["unknown"] });
    identity.close();
  });
});

/** An open file that is checked for changes, and another connection to it. */
function watch(folder: TempFolder) {
  const file = createStore(folder);
  const db = openDatabase({ file });
  const identity = new FileIdentity(file, db);
  const other = new DatabaseSync(file);
  return {
    file,
    find: () => identity.findProblem()?.text,
    deletePlant: (id: bigint) => expect(prepareDeleteBatch(db)(batchOf(id))).toMatchObject({ outcomes: ["deleted"] }),
    other,
    checkpoint: () => other.exec("PRAGMA wal_checkpoint(FULL)"),
    [Symbol.dispose]: () => {
      other.close();
      identity.close();
    },
  };
}

/** Runs `work` just before the next check for a file's name, until it is disposed of. */
function onStat(file: string, work: () => void): Disposable {
  const { statSync: original } = fs;
  replaceStat((path: string, options: fs.StatSyncOptions) => {
    if (path === file) work();
    return original(path, options);
  });
  return { [Symbol.dispose]: () => replaceStat(original) };
}

function replaceStat(stat: unknown): void {
  Object.assign(fs, { statSync: stat });
  syncBuiltinESMExports();
}

describe("truncated log detection", () => {
  test("closes its files, and leaves no log behind", () => {
    using folder = createTempFolder();
    {
      using watched = watch(folder);
      watched.deletePlant(1n);
    }
    expect(folder.open()).toEqual([]);
    expect(readdirSync(folder.path).toSorted()).toEqual(["other.db", "plants.db"]);
  });

  test("keeps reporting a detected change", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    const log = readFileSync(`${watched.file}-wal`);
    truncateSync(`${watched.file}-wal`);
    expect(watched.find()).toBe(cut);
    writeFileSync(`${watched.file}-wal`, log);
    expect(watched.find()).toBe(cut);
  });

  test("detects a truncated log after a complete checkpoint", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    watched.checkpoint();
    expect(watched.find()).toBeUndefined();
    truncateSync(`${watched.file}-wal`);
    expect(watched.find()).toBe(cut);
  });

  test("reports no change when SQLite writes after the index is read", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    /** Returns the problem if a write runs between reading the index and the log. */
    const findAfter = (write: () => void): string | undefined => {
      using _ = onStat(watched.file, write);
      return watched.find();
    };
    expect(findAfter(() => watched.other.exec("CREATE TABLE other AS SELECT randomblob(100000)"))).toBeUndefined();
    expect(findAfter(watched.checkpoint)).toBeUndefined();
    // Restarts the log.
    expect(findAfter(() => watched.deletePlant(1n))).toBeUndefined();
    expect(findAfter(() => watched.other.exec("PRAGMA wal_checkpoint(TRUNCATE)"))).toBeUndefined();
    watched.deletePlant(2n);
    expect(findAfter(() => truncateSync(`${watched.file}-wal`))).toBe(cut);
  });

  test("reports no change while the index header copies differ", () => {
    using folder = createTempFolder();
    using files = new DisposableStack();
    using watched = watch(folder);
    watched.deletePlant(1n);
    truncateSync(`${watched.file}-wal`);
    const shm = openSync(`${watched.file}-shm`, "r+");
    // The file is closed after the connections, because closing a file releases the process's locks on it.
    files.defer(() => closeSync(shm));
    const frames = new Uint32Array(1);
    readSync(shm, frames, 0, frames.byteLength, framesAt);
    writeSync(shm, new Uint32Array([99]), 0, frames.byteLength, framesAt);
    expect(watched.find()).toBeUndefined();
    writeSync(shm, frames, 0, frames.byteLength, framesAt);
    expect(watched.find()).toBe(cut);
  });

  test("prevents dropping expired records in a changed file", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = openDatabase({ file, migrates: true });
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
             INSERT INTO deletions SELECT i, i, i, '', '', i FROM n`);
    await using store = closing(await openSqliteStore({ file }));
    truncateSync(`${file}-wal`);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: ${cut}`);
    const log = readFileSync(`${file}-wal`);
    // Enough time for many slices.
    await sleep(200);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
  });
});

describe("an SQLite store in use", () => {
  // oxfmt-ignore
  const uses: readonly { name: string; use: (file: string, other: DatabaseSync) => void | Promise<void> }[] = [
    { name: "checkpoint", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(FULL)") },
    { name: "restart the log", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(RESTART)") },
    { name: "truncate the log", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(TRUNCATE)") },
    { name: "write, checkpoint and truncate the log", use: (_file, other) => {
        other.exec("CREATE TABLE IF NOT EXISTS other (x); INSERT INTO other VALUES (randomblob(100000))");
        other.exec("PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO other VALUES (1)");
      } },
    { name: "make the file smaller", use: (_file, other) => other.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") },
    { name: "shorten a long log", use: (_file, other) => {
        other.exec("PRAGMA journal_size_limit = 4096; CREATE TABLE IF NOT EXISTS other (x)");
        other.exec("INSERT INTO other VALUES (randomblob(1e7)); PRAGMA wal_checkpoint(RESTART); DELETE FROM other");
      } },
    { name: "import", use: async (file) => {
        await using database = await openSqliteDatabase(file);
        await using running = await database.startImport();
        await running.add(Array.from({ length: 20_000 }, (_, i) => BigInt(10_000 + i)));
      } },
    { name: "back up", use: (file) => backUp(file, `${file}.${Math.random()}`) },
    { name: "open and close", use: (file) => openDatabase({ file }).close() },
    { name: "read", use: (_file, other) => void other.prepare("SELECT count(*) FROM plants").get() },
    { name: "change the file's timestamps", use: (file) => touch(file) },
    { name: "change the file's timestamps after a checkpoint", use: (file, other) => {
        other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        touch(file);
      } },
  ];

  test.each(uses)("when other programs $name, continues to delete", async ({ use }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: plants });
    const other = new DatabaseSync(file);
    for (let id = 1n; id <= 9n; id += 3n) {
      for (const next of [id, id + 1n]) await expect(store.delete(next, deleteCall())).resolves.toBe(true);
      await use(file, other);
      await expect(store.delete(id + 2n, deleteCall())).resolves.toBe(true);
    }
    expect(store.problem).toBeUndefined();
    other.close();
    await store.close();
    expect(plantsIn(file).filter((id) => id < 20n)[0]).toBe(10n);
    expect(readSqlite(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });
});
