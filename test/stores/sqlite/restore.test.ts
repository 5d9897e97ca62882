// oxfmt-ignore
import { chownSync, copyFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync,
  truncateSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { backUp, restore } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { recordFileSteps, unfinishedNameIn } from "../../support/plants/file-steps.ts";
import { leaveTruncatedFile, plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

/** Creates a backup with plants 1 to 3. */
function makeBackup(folder: TempFolder): string {
  openDatabase({ file: folder.file("first.db"), plantsWhenCreated: { first: 1n, last: 3n } }).close();
  backUp(folder.file("first.db"), folder.file("backup.db"));
  return folder.file("backup.db");
}

/** Adds a page to a file that nothing refers to, which `VACUUM` would leave out (sqlite.org/fileformat.html). */
function addUnusedPage(file: string): void {
  const bytes = readFileSync(file);
  const pageBytes = bytes.readUInt16BE(16);
  bytes.writeUInt32BE(bytes.length / pageBytes + 1, 28);
  writeFileSync(file, Buffer.concat([bytes, Buffer.alloc(pageBytes)]));
}

const open = "another process has the file open; stop the server first";

describe("restoring a backup", () => {
  // oxfmt-ignore
  const olds: readonly { name: string; leave: (folder: TempFolder, file: string) => void }[] = [
    { name: "no store exists", leave: () => undefined },
    { name: "another store exists", leave: (_folder, file) => openDatabase({ file, migrates: true }).close() },
    { name: "a crash has left a log", leave: (folder, file) => {
        using db = openDatabase({ file: folder.file("crashing.db"), plantsWhenCreated: { first: 1n, last: 900n } });
        db.exec("DELETE FROM plants WHERE id > 5");
        for (const end of ["", "-wal", "-shm"]) copyFileSync(`${folder.file("crashing.db")}${end}`, `${file}${end}`);
      } },
    { name: "a log and a journal exist without a database file", leave: (_folder, file) => {
        for (const end of ["-wal", "-shm", "-journal"]) writeFileSync(`${file}${end}`, "left");
      } },
    { name: "the file is damaged", leave: (_folder, file) => writeFileSync(file, "not a database ".repeat(1_000)) },
  ];

  test.each(olds)("if $name, creates a copy with mode 0600", ({ leave }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = makeBackup(folder);
    const bytes = readFileSync(backup);
    leave(folder, file);
    restore(file, backup);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder.path).filter((name) => name.startsWith("plants.db"))).toEqual(["plants.db"]);
    expect(plantsIn(file)).toEqual([1n, 2n, 3n]);
    expect(readSqlite(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(readFileSync(backup).equals(bytes)).toBe(true);
    expect(folder.open()).toEqual([]);
    openDatabase({ file }).close();
  });

  test("replaces a symbolic link's target, and removes the old log", () => {
    using folder = createTempFolder();
    const backup = makeBackup(folder);
    mkdirSync(folder.file("volume"));
    const target = folder.file("volume/plants.db");
    using old = openDatabase({ file: folder.file("crashing.db"), plantsWhenCreated: { first: 1n, last: 900n } });
    old.exec("DELETE FROM plants WHERE id > 5");
    for (const end of ["", "-wal"]) copyFileSync(`${folder.file("crashing.db")}${end}`, `${target}${end}`);
    symlinkSync("volume/plants.db", folder.file("plants.db"));
    restore(folder.file("plants.db"), backup);
    expect(lstatSync(folder.file("plants.db")).isSymbolicLink()).toBe(true);
    expect(readdirSync(folder.file("volume"))).toEqual(["plants.db"]);
    expect(plantsIn(target)).toEqual([1n, 2n, 3n]);
  });

  test("includes the backup's log if the backup is a symbolic link", () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("volume"));
    const backup = folder.file("volume/backup.db");
    using killed = openDatabase({ file: folder.file("crashing.db"), plantsWhenCreated: { first: 1n, last: 3n } });
    killed.exec("DELETE FROM plants WHERE id = 2");
    for (const end of ["", "-wal"]) copyFileSync(`${folder.file("crashing.db")}${end}`, `${backup}${end}`);
    symlinkSync("volume/backup.db", folder.file("latest.db"));
    restore(folder.file("plants.db"), folder.file("latest.db"));
    expect(plantsIn(folder.file("plants.db"))).toEqual([1n, 3n]);
  });

  test.each([
    ["no store exists", () => undefined, []],
    ["another store exists", (file: string) => openDatabase({ file, migrates: true }).close(), []],
    ["a log exists without a database file", (file: string) => writeFileSync(`${file}-wal`, "left"), ["plants.db-wal"]],
    // A start from the file without its log would restore a deleted plant.
    ["the file is damaged and has a log", leaveTruncatedFile, ["plants.db", "plants.db-wal", "plants.db-shm"]],
  ])("if %s, syncs the copy and the removals before the rename", (_name, leave, removed) => {
    using folder = createTempFolder();
    using recorded = recordFileSteps();
    const backup = makeBackup(folder);
    leave(folder.file("plants.db"));
    const before = recorded.steps.length;
    restore(folder.file("plants.db"), backup);
    const steps = recorded.steps.slice(before);
    const unfinished = unfinishedNameIn(steps);
    expect(steps).toEqual([
      `sync ${unfinished}`,
      ...removed.map((name) => `remove ${name}`),
      `sync ${basename(folder.path)}`,
      `rename ${unfinished} plants.db`,
      `sync ${basename(folder.path)}`,
    ]);
  });

  test("keeps other processes from opening the store until it is done", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = makeBackup(folder);
    openDatabase({ file, migrates: true }).close();
    let tried = 0;
    using _ = recordFileSteps((step) => {
      if (!step.startsWith("rename ")) return;
      tried++;
      expect(() => openDatabase({ file, lockTimeoutMs: 1 })).toThrow(/another process holds the lock on the file$/);
    });
    restore(file, backup);
    expect(tried).toBe(1);
  });

  test.each([
    { name: "is open", sql: "DELETE FROM plants WHERE id = 8" },
    {
      name: "is being read without a write-ahead log",
      sql: "DELETE FROM plants WHERE id = 8; PRAGMA journal_mode = DELETE; BEGIN; SELECT count(*) FROM plants",
    },
  ])("refuses a store that $name, and leaves it unchanged", ({ sql }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = makeBackup(folder);
    const db = openDatabase({ file, plantsWhenCreated: { first: 7n, last: 9n } });
    db.exec(sql);
    expect(() => restore(file, backup)).toThrow(`cannot restore ${file}: ${open}`);
    db.close();
    expect(folder.open()).toEqual([]);
    expect(readdirSync(folder.path).toSorted()).toEqual(["backup.db", "first.db", "plants.db"]);
    expect(plantsIn(file)).toEqual([7n, 9n]);
  });

  // oxfmt-ignore
  const places: readonly { name: string; make: (folder: TempFolder) => string; problem: string }[] = [
    { name: "a folder that does not exist", make: (folder) => folder.file("nowhere/plants.db"),
      problem: "the directory FOLDER/nowhere does not exist" },
    { name: "a path that is a folder", make: (folder) => {
        mkdirSync(folder.file("plants.db"));
        return folder.file("plants.db");
      }, problem: "the path is a directory" },
    { name: "a broken symbolic link", make: (folder) => {
        symlinkSync("volume.db", folder.file("plants.db"));
        return folder.file("plants.db");
      }, problem: "the path is a symbolic link to volume.db, which does not exist" },
  ];

  test.each(places)("refuses $name as the target", ({ make, problem }) => {
    using folder = createTempFolder();
    const backup = makeBackup(folder);
    const file = make(folder);
    const before = readdirSync(folder.path, { recursive: true });
    expect(() => restore(file, backup)).toThrow(`cannot restore ${file}: ${problem.replace("FOLDER", folder.path)}`);
    expect(readdirSync(folder.path, { recursive: true })).toEqual(before);
  });

  test.each(
    // oxfmt-ignore
    [
      ["is missing", undefined, /^cannot open .*none\.db: file not found$/],
      ["is damaged", (backup: string) => truncateSync(backup, 4_096 * 3),
        /^cannot open .*backup\.db: the file is damaged$/],
      ["is empty", (backup: string) => truncateSync(backup),
        /^cannot open .*backup\.db: it is not a plant store; use another backup$/],
      ["is a database without tables", (backup: string) => {
          truncateSync(backup);
          using db = new DatabaseSync(backup);
          db.exec("PRAGMA user_version = 1");
        }, /^cannot open .*backup\.db: it is not a plant store; use another backup$/],
      ["has a newer release's schema", (backup: string) => {
          using db = new DatabaseSync(backup);
          db.exec("PRAGMA user_version = 99");
        }, /^cannot open .*backup\.db: its schema has version 99, /],
      ["has an unused page", addUnusedPage, /^cannot open .*backup\.db: the file is damaged \(Page \d+: never used\)$/],
      ["belongs to another program", (backup: string) => {
          using db = new DatabaseSync(backup);
          db.exec("PRAGMA application_id = 7");
        }, /^cannot open .*backup\.db: the file is an SQLite database of another program$/],
    ],
  )("that %s does not change the store", (_name, spoil, problem) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = spoil === undefined ? folder.file("none.db") : makeBackup(folder);
    spoil?.(backup);
    openDatabase({ file, plantsWhenCreated: { first: 7n, last: 9n } }).close();
    const before = readdirSync(folder.path);
    expect(() => restore(file, backup)).toThrow(problem);
    expect(readdirSync(folder.path)).toEqual(before);
    expect(plantsIn(file)).toEqual([7n, 8n, 9n]);
  });
});

test("a damaged store is kept when its replacement is lost", () => {
  using folder = createTempFolder();
  const [file, backup] = [folder.file("plants.db"), makeBackup(folder)];
  writeFileSync(file, "not a database ".repeat(1_000));
  {
    using _ = recordFileSteps((step) => {
      if (step.startsWith("sync plants.db.")) rmSync(folder.file(step.slice("sync ".length)));
    });
    expect(() => restore(file, backup)).toThrow(`cannot restore ${file}: ENOENT`);
  }
  expect(readFileSync(file, "utf8")).toMatch(/^not a database /);
});

test("a restored store ignores the rollback journal of its lost file", () => {
  using folder = createTempFolder();
  const [old, backup, file] = [folder.file("old.db"), folder.file("backup.db"), folder.file("plants.db")];
  openDatabase({ file: old, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  backUp(old, backup);
  using crashing = new DatabaseSync(old);
  // Without syncs, SQLite uses the whole journal in a rollback (sqlite.org/fileformat.html#the_rollback_journal).
  crashing.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; DELETE FROM plants WHERE id = 2");
  crashing.exec("BEGIN; DELETE FROM plants");
  copyFileSync(`${old}-journal`, `${file}-journal`);
  restore(file, backup);
  expect(plantsIn(file)).toEqual([1n, 2n, 3n]);
});

// Only root can give a file to another user.
test.runIf(process.getuid?.() === 0)("a store keeps its owner and group when root restores it", () => {
  using folder = createTempFolder();
  const [file, backup] = [folder.file("plants.db"), folder.file("backup.db")];
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  backUp(file, backup);
  chownSync(file, 1_001, 1_002);
  restore(file, backup);
  expect(statSync(file)).toMatchObject({ uid: 1_001, gid: 1_002 });
});
