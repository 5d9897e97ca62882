import { Code } from "@connectrpc/connect";
import {
  closeSync,
  copyFileSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { ExternalChanges } from "../../../src/stores/sqlite/external-changes.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { type DeleteBatch, prepareDeleteBatch } from "../../../src/stores/sqlite/delete-batch.ts";
import { FileIdentity, onlyWhileSameFile } from "../../../src/stores/sqlite/file-identity.ts";
import { openSqliteDatabase } from "../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "../../../packages/testing/src/process/temp-folder.ts";

const written = 'another program, such as cp, wrote to the file; run "plantstore restore" with a backup';
const cut = "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions";

const plants = { first: 1n, last: 2_000n };

/** Creates a store in a folder, and `other.db`, a copy of it. Returns the path of the store. */
function createStore(folder: TempFolder): string {
  const file = folder.file("plants.db");
  openDatabase({ file, plantsWhenCreated: plants }).close();
  copyFileSync(file, folder.file("other.db"));
  return file;
}

/** Changes to a file, of which `other` is an older copy, or to its log. All keep their inodes. */
const changes: readonly { name: string; change: (file: string, other: string) => void; problem: string }[] = [
  { name: "its log is truncated to zero bytes", change: (file) => truncateSync(`${file}-wal`), problem: cut },
  {
    name: "the end of its log is truncated",
    change: (file) => truncateSync(`${file}-wal`, statSync(`${file}-wal`).size - 1),
    problem: cut,
  },
  {
    name: "another log is copied over its log",
    change: (file, other) => {
      using db = new DatabaseSync(other);
      db.exec("PRAGMA journal_mode = WAL; CREATE TABLE other AS SELECT randomblob(1000000)");
      copyFileSync(`${other}-wal`, `${file}-wal`);
    },
    problem: cut,
  },
  {
    name: "an older copy is copied over the file",
    change: (file, other) => copyFileSync(other, file),
    problem: written,
  },
  {
    name: "a smaller store is copied over the file",
    change: (file, other) => {
      openDatabase({ file: `${other}.small`, plantsWhenCreated: { first: 1n, last: 3n } }).close();
      copyFileSync(`${other}.small`, file);
    },
    problem: written,
  },
  { name: "the file is truncated to zero bytes", change: (file) => truncateSync(file), problem: written },
];

function batchOf(id: bigint): DeleteBatch {
  return { ids: [id], subjects: ["tester"], requestIds: ["request-1"] };
}

describe("a store whose file another program changes", () => {
  test.each(changes)("acknowledges no further deletion after $name", async ({ change, problem }) => {
    using folder = createTempFolder();
    const file = createStore(folder);
    const store = await openSqliteStore({ file });
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    change(file, folder.file("other.db"));
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: ${problem}`);
    expect(store.needsRestart).toBe(false);
    const [changed, log] = [readFileSync(file), readFileSync(`${file}-wal`)];
    await store.close();
    // A log that does not belong to the file would damage it.
    expect(readFileSync(file).equals(changed)).toBe(true);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    expect(folder.open()).toEqual([]);
  });

  test.each(changes)("reports an unknown outcome when $name between a commit and its result", (row) => {
    using folder = createTempFolder();
    const file = createStore(folder);
    const db = openDatabase({ file });
    const identity = new FileIdentity(file, db);
    const deleteUnchecked = prepareDeleteBatch(db);
    let isChanged = false;
    const deleteBatch = onlyWhileSameFile(identity, (batch) => {
      const result = deleteUnchecked(batch);
      if (isChanged) row.change(file, folder.file("other.db"));
      return result;
    });
    expect(deleteBatch(batchOf(1n))).toMatchObject({ kind: "committed" });
    isChanged = true;
    expect(deleteBatch(batchOf(2n))).toMatchObject({ kind: "unknown", problem: { text: row.problem } });
    expect(deleteBatch(batchOf(3n))).toMatchObject({ kind: "not-committed", problem: { text: row.problem } });
    identity.close();
    expect(folder.open()).toEqual([]);
  });

  test.each(["its log is truncated to zero bytes", "an older copy is copied over the file"])(
    "detects that $0 just before a commit",
    (name) => {
      using folder = createTempFolder();
      const file = createStore(folder);
      const db = openDatabase({ file });
      const identity = new FileIdentity(file, db);
      const deleteUnchecked = prepareDeleteBatch(db);
      const deleteBatch = onlyWhileSameFile(identity, (batch) => {
        if (batch.ids[0] === 2n) changes.find((row) => row.name === name)?.change(file, folder.file("other.db"));
        return deleteUnchecked(batch);
      });
      expect(deleteBatch(batchOf(1n))).toMatchObject({ kind: "committed" });
      // The frames of this batch are appended after the old ones, so that the log has the expected length.
      expect(deleteBatch(batchOf(2n))).toMatchObject({ kind: "unknown" });
      identity.close();
    },
  );
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
    /** Copies the whole log into the file. */
    checkpoint: () => other.exec("PRAGMA wal_checkpoint(FULL)"),
    copyOver: () => copyFileSync(folder.file("other.db"), file),
    [Symbol.dispose]: () => {
      other.close();
      identity.close();
    },
  };
}

describe("the detection of external changes", () => {
  test("closes its files, and leaves no log behind", () => {
    using folder = createTempFolder();
    {
      using watched = watch(folder);
      watched.deletePlant(1n);
    }
    expect(folder.open()).toEqual([]);
    expect(readdirSync(folder.path).toSorted()).toEqual(["other.db", "plants.db"]);
  });

  test("detects a copy over a file with a leftover log before the first checkpoint", () => {
    using folder = createTempFolder();
    {
      using watched = watch(folder);
      watched.deletePlant(1n);
      for (const end of ["", "-wal"]) copyFileSync(`${watched.file}${end}`, `${folder.file("left.db")}${end}`);
    }
    const file = folder.file("left.db");
    const identity = new FileIdentity(file, openDatabase({ file }));
    expect(identity.findProblem()).toBeUndefined();
    copyFileSync(folder.file("other.db"), file);
    expect(identity.findProblem()).toMatchObject({ text: written });
    identity.close();
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

  test("detects a copy right after a checkpoint that it has checked", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    expect(watched.find()).toBeUndefined();
    watched.checkpoint();
    expect(watched.find()).toBeUndefined();
    watched.copyOver();
    expect(watched.find()).toBe(written);
  });

  test("detects by its length a copy right after a checkpoint that it has not checked", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    watched.checkpoint();
    truncateSync(watched.file, statSync(watched.file).size - 4_096);
    expect(watched.find()).toBe(written);
  });

  test("detects by its length a copy with the previous modification time", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    utimesSync(watched.file, 1, 1);
    watched.deletePlant(1n);
    watched.checkpoint();
    expect(watched.find()).toBeUndefined();
    utimesSync(watched.file, 1, 1);
    watched.deletePlant(2n);
    watched.checkpoint();
    utimesSync(watched.file, 1, 1);
    expect(watched.find()).toBeUndefined();
    // The log is restarted, so that the index does not contain the length of the file.
    watched.deletePlant(3n);
    truncateSync(watched.file, statSync(watched.file).size - 4_096);
    utimesSync(watched.file, 1, 1);
    expect(watched.find()).toBe(written);
  });

  test.each([
    { name: "a commit that restarts the log, and a checkpoint", commits: 1, checkpoints: 1 },
    { name: "a checkpoint of a log that was restarted twice", commits: 2, checkpoints: 1 },
  ])("reports no change after $name", ({ commits, checkpoints }) => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    watched.checkpoint();
    for (let check = 0; check < 3; check++) expect(watched.find()).toBeUndefined();
    for (let commit = 0; commit < commits; commit++) {
      watched.other.exec(`DELETE FROM plants WHERE id = ${commit + 2}`);
      if (commit < checkpoints) watched.checkpoint();
    }
    expect(watched.find()).toBeUndefined();
  });

  test("reports no change after a commit while a reader blocks the restart of the log, and a truncating checkpoint", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.deletePlant(1n);
    using reader = new DatabaseSync(watched.file, { readOnly: true });
    reader.exec("BEGIN; SELECT count(*) FROM plants");
    watched.checkpoint();
    for (let check = 0; check < 3; check++) expect(watched.find()).toBeUndefined();
    watched.other.exec("DELETE FROM plants WHERE id = 2");
    reader.exec("COMMIT");
    watched.other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(watched.find()).toBeUndefined();
  });

  test("reports no change when SQLite writes after the index is read", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    const check = new ExternalChanges(watched.file);
    const findAfter = (write: () => void, index = check.readIndex()): unknown => {
      write();
      return check.find(index, statSync(watched.file), statSync(`${watched.file}-wal`).size);
    };
    expect(findAfter(() => watched.other.exec("CREATE TABLE other AS SELECT randomblob(100000)"))).toBeUndefined();
    expect(findAfter(watched.checkpoint)).toBeUndefined();
    expect(findAfter(() => {})).toBeUndefined();
    // The first half was read before a commit and a checkpoint, the second half after them.
    const index = check.readIndex();
    const torn = index && { ...index, frames: index.frames - 1, pages: index.pages - 1 };
    expect(findAfter(() => {}, torn)).toBeUndefined();
    // Restarts the log.
    expect(findAfter(() => watched.deletePlant(1n))).toBeUndefined();
    expect(findAfter(() => watched.other.exec("PRAGMA wal_checkpoint(TRUNCATE)"))).toBeUndefined();
    expect(findAfter(() => {})).toBeUndefined();
    expect(findAfter(() => watched.copyOver())).toBe("file-written");
    check.close();
  });

  test("prevents dropping expired records in a changed file", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = openDatabase({ file, migrates: true });
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
             INSERT INTO deletions SELECT i, i, i, '', '', i FROM n`);
    const store = await openSqliteStore({ file });
    truncateSync(`${file}-wal`);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: ${cut}`);
    const log = readFileSync(`${file}-wal`);
    // Enough time for many slices.
    await sleep(200);
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    await store.close();
  });
});

describe("a store whose file other processes use with SQLite", () => {
  const uses: readonly { name: string; use: (file: string, other: DatabaseSync) => void | Promise<void> }[] = [
    { name: "checkpoint", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(FULL)") },
    { name: "restart the log", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(RESTART)") },
    { name: "truncate the log", use: (_file, other) => other.exec("PRAGMA wal_checkpoint(TRUNCATE)") },
    {
      name: "write, checkpoint and truncate the log",
      use: (_file, other) => {
        other.exec("CREATE TABLE IF NOT EXISTS other (x); INSERT INTO other VALUES (randomblob(100000))");
        other.exec("PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO other VALUES (1)");
      },
    },
    { name: "make the file smaller", use: (_file, other) => other.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") },
    {
      name: "shorten a long log",
      use: (_file, other) => {
        other.exec("PRAGMA journal_size_limit = 4096; CREATE TABLE IF NOT EXISTS other (x)");
        other.exec(
          "INSERT INTO other VALUES (randomblob(10000000)); PRAGMA wal_checkpoint(RESTART); DELETE FROM other",
        );
      },
    },
    {
      name: "import",
      use: async (file) => {
        await using database = await openSqliteDatabase(file);
        await using running = await database.startImport();
        await running.add(Array.from({ length: 20_000 }, (_, i) => BigInt(10_000 + i)));
      },
    },
    { name: "back up", use: (file) => backUp(file, `${file}.${Math.random()}`) },
    { name: "open and close", use: (file) => openDatabase({ file }).close() },
    { name: "read", use: (_file, other) => void other.prepare("SELECT count(*) FROM plants").get() },
  ];

  test.each(uses)("keeps deleting while they $name", async ({ use }) => {
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

  test("keeps deleting when one of its checkpoints directly follows another", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 20_000n } });
    const writtenBefore = statSync(file).mtimeMs;
    for (let first = 1n; first < 20_000n; first += 100n) {
      const ids = Array.from({ length: 100 }, (_, i) => first + BigInt(i));
      await expect(Promise.all(ids.map((id) => store.delete(id, deleteCall())))).resolves.not.toContain(false);
    }
    expect(statSync(file).mtimeMs).toBeGreaterThan(writtenBefore);
    expect(store.problem).toBeUndefined();
    await store.close();
  });

  test("keeps deleting during a running checkpoint", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: plants }).close();
    const db = openDatabase({ file });
    const identity = new FileIdentity(file, db);
    expect(prepareDeleteBatch(db)(batchOf(1n))).toMatchObject({ kind: "committed" });
    // A checkpoint sets this in the index before it writes to the file.
    const index = openSync(`${file}-shm`, "r+");
    writeSync(index, new Uint32Array([99]), 0, 4, 128);
    closeSync(index);
    utimesSync(file, 1, 1);
    expect(identity.findProblem()).toBeUndefined();
    identity.close();
  });
});
