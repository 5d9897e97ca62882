import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { schemaAfter } from "../../../src/stores/contract/schema-version.ts";
import { StoreOpenError } from "../../../src/stores/contract/store-options.ts";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { assertFixedWal, makeDurable, openDatabase } from "../../../src/stores/sqlite/database.ts";
import { checkSqliteStore } from "../../../src/stores/sqlite/plant-database.ts";
import { migrate, migrations, versionOf } from "../../../src/stores/sqlite/migrate.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { lockTimeoutMsDefault } from "../../../src/stores/sqlite/transaction.ts";
import { createTempFolder, type TempFolder, waitLimitMs } from "@protoport/testing/process";
import { loadOtherProcess } from "../../support/plants/open-sqlite.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";

function writeDatabase(file: string, sql: string): void {
  using db = new DatabaseSync(file, { defensive: false });
  db.exec(sql);
}

function newStore(file: string): string {
  openDatabase({ file, migrates: true }).close();
  return file;
}

// Windows has no such modes.
test.runIf(process.platform !== "win32")("only the owner can read a store, its log and its backup", async () => {
  using folder = createTempFolder();
  const modesOf = (...names: readonly string[]): string[] =>
    names.map((name) => (statSync(folder.file(name)).mode & 0o777).toString(8));
  using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
  db.exec("INSERT INTO plants VALUES (1)");
  backUp(folder.file("plants.db"), folder.file("backup.db"));
  expect(modesOf("plants.db", "plants.db-wal", "plants.db-shm", "backup.db")).toEqual(["600", "600", "600", "600"]);
  chmodSync(folder.file("plants.db"), 0o640);
  openDatabase({ file: folder.file("plants.db") }).close();
  expect(modesOf("plants.db")).toEqual(["640"]);
});

/** Runs the check for a write-ahead log without the defect, as in this SQLite version. */
function assertFixedWalOf(version: string): void {
  using db = new DatabaseSync(":memory:");
  db.function("sqlite_version", () => version);
  assertFixedWal(db);
}

describe("opening a database file", () => {
  test("syncs each commit to the disk", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
    // 2 is FULL (sqlite.org/pragma.html#pragma_synchronous). The last two are also necessary on macOS.
    const wanted = { journal_mode: "wal", synchronous: 2n, fullfsync: 1n, checkpoint_fullfsync: 1n };
    const found = Object.keys(wanted).map((name) => db.prepare(`PRAGMA ${name}`).get());
    expect(Object.assign({}, ...found)).toEqual(wanted);
  });

  test("refuses a database that cannot have a write-ahead log", () => {
    // A database in memory has its own journal mode.
    using db = new DatabaseSync(":memory:", { readBigInts: true });
    expect(() => makeDurable(db)).toThrow(/ does not support a write-ahead log, so commits would not be durable$/);
  });

  test("refuses a database whose commits are not synced", () => {
    using folder = createTempFolder();
    using db = new DatabaseSync(folder.file("plants.db"), { readBigInts: true });
    db.exec("PRAGMA synchronous = NORMAL");
    db.setAuthorizer((action, name, value) =>
      action === constants.SQLITE_PRAGMA && name === "synchronous" && value !== null
        ? constants.SQLITE_IGNORE
        : constants.SQLITE_OK,
    );
    expect(() => makeDurable(db)).toThrow(/ so commits would not be durable$/);
  });

  test("retries a lock every two milliseconds, not with SQLite's backoff", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
    expect(db.prepare("PRAGMA busy_timeout").get()).toEqual({ timeout: 2n });
  });

  test("shrinks the log after a long read", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
    expect(db.prepare("PRAGMA journal_size_limit").get()).toEqual({ journal_size_limit: 16n * 1024n * 1024n });
  });

  const fixed = ["3.51.3", "3.51.10", "3.52.0", "4.0.0", "3.50.7", "3.44.6"];
  test.each(fixed)("accepts SQLite %s because its log cannot lose commits", (version) => {
    expect(() => assertFixedWalOf(version)).not.toThrow();
  });

  const faulty = ["3.51.2", "3.50.6", "3.49.9", "3.44.5", "3.6.23.1", "2.99.99"];
  test.each(faulty)("refuses SQLite %s because its log can lose commits", (version) => {
    const remedy = "use SQLite 3.51.3 or newer (as in Node.js 24.15), 3.50.7 or 3.44.6";
    const want = `SQLite ${version}, included in this Node.js, can lose commits: ${remedy}`;
    expect(() => assertFixedWalOf(version)).toThrow(want);
  });

  test("opens a file whose name has a special meaning for SQLite", () => {
    using folder = createTempFolder();
    const cwd = process.cwd();
    process.chdir(folder.path);
    try {
      openDatabase({ file: ":memory:", plantsWhenCreated: { first: 1n, last: 2n } }).close();
      const again = openDatabase({ file: ":memory:" });
      expect(again.prepare("SELECT count(*) AS plants FROM plants").get()).toEqual({ plants: 2n });
      again.close();
    } finally {
      process.chdir(cwd);
    }
  });

  // As root, SQLite itself fails in /proc; for another user, the folder's permissions prevent access.
  // oxfmt-ignore
  const unopenable: readonly (readonly [
    name: string, message: RegExp, prepare?: ((file: string, folder: TempFolder) => unknown) | undefined, path?: string
  ])[] = [
    ["a folder that does not exist", /cannot open .*nowhere\/plants\.db: the directory .*nowhere does not exist$/,
      undefined, "nowhere/plants.db"],
    ["a folder in place of the file", /plants\.db: the path is a directory$/, (file) => mkdirSync(file)],
    ["a file in place of the folder", /file is not a directory$/,
      (_file, folder) => writeFileSync(folder.file("file"), ""), "file/plants.db"],
    ["a folder that is not writable",
      /^cannot open \/proc\/plants\.db: (the directory \/proc is not writable|the file cannot be opened)$/,
      undefined, "/proc/plants.db"],
    ["a file that is not a database", /plants\.db: the file is not an SQLite database$/,
      (file) => writeFileSync(file, "not a database ".repeat(1_000))],
    ["another program's database", /plants\.db: the file is an SQLite database of another program$/,
      (file) => writeDatabase(file, "CREATE TABLE plants (id INTEGER, name TEXT)")],
    ["a schema of a newer release",
      /plants\.db: its schema has version 99, which requires a release of schema version 98 or newer, but this release has schema version 1: use a newer release$/,
      (file) => writeDatabase(newStore(file), "PRAGMA user_version = 99")],
    ["a schema of the next release after a breaking step",
      /plants\.db: its schema has version 2, which requires a release of schema version 2 or newer, but this release has schema version 1: use a newer release$/,
      (file) => writeDatabase(newStore(file),
        "PRAGMA user_version = 2; UPDATE plantstore_schema SET oldest_server = 2")],
    ["a damaged database", /plants\.db: the file is damaged$/, (file) => writeDatabase(newStore(file),
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE nonsense(' WHERE name = 'plants'")],
  ];

  test.for(unopenable)("with %s fails with a clear message", ([, message, prepare, path = "plants.db"]) => {
    using folder = createTempFolder();
    const file = resolve(folder.path, path);
    prepare?.(file, folder);
    const onlyByWriting = path.startsWith("/proc/");
    const open = (): unknown => openDatabase({ file, migrates: onlyByWriting });
    expect(open).toThrow(StoreOpenError);
    expect(open).toThrow(message);
    expect(open).toThrow(expect.objectContaining({ cause: expect.any(Error) }));
    if (!onlyByWriting) expect(() => checkSqliteStore(file)).toThrow(message);
    // The last connection that closes removes the log.
    expect(existsSync(`${file}-wal`)).toBe(false);
  });

  test("fails with the same message in the storage thread", async () => {
    using folder = createTempFolder();
    const opened = openSqliteStore({ file: folder.file("nowhere/plants.db") });
    const message = /^cannot open .*nowhere\/plants\.db: the directory .*nowhere does not exist$/;
    const error = { name: "StoreOpenError", code: "ERR_STORE_OPEN", message: expect.stringMatching(message) };
    await expect(opened).rejects.toEqual(expect.objectContaining(error));
  });

  test("creates a store in an empty database with any user_version", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    writeDatabase(file, `PRAGMA user_version = ${schemaAfter(migrations).version}`);
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 2n } }).close();
    expect(plantsIn(file)).toHaveLength(2);
  });

  test("runs only the remaining steps after another process has migrated the file", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = new DatabaseSync(file, { readBigInts: true });
    let requested = 0;
    // SQLite calls this when it waits for the lock, after the version was read.
    db.setAuthorizer((action) => {
      if (action === constants.SQLITE_TRANSACTION && requested++ === 0) openDatabase({ file, migrates: true }).close();
      return constants.SQLITE_OK;
    });
    migrate(db, { plantsWhenCreated: { first: 1n, last: 2n } });
    expect(requested).toBeGreaterThan(0);
    expect(versionOf(db)).toEqual(schemaAfter(migrations));
    // Another process created the store.
    expect(db.prepare("SELECT count(*) AS plants FROM plants").get()).toEqual({ plants: 0n });
  });

  test("creates the store once when several processes open it concurrently", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const options = { file, plantsWhenCreated: { first: 1n, last: 2_000n }, lockTimeoutMs: waitLimitMs };
    const processes = [openSqliteStore];
    while (processes.length < 4) processes.push(await loadOtherProcess());
    await Promise.all((await Promise.all(processes.map((open) => open(options)))).map((store) => store.close()));
    expect(plantsIn(file)).toHaveLength(2_000);
  });

  test("fails while another process has the file open by an earlier name", () => {
    using folder = createTempFolder();
    const [file, moved] = [folder.file("plants.db"), folder.file("moved.db")];
    const other = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    other.exec("DELETE FROM plants WHERE id = 2");
    renameSync(file, moved);
    const want = `cannot open ${moved}: another process has opened the file by an earlier name; move the file back`;
    expect(() => openDatabase({ file: moved, lockTimeoutMs: 10 })).toThrow(want);
    renameSync(moved, file);
    other.close();
    expect(readdirSync(folder.path)).toEqual(["plants.db"]);
    renameSync(file, moved);
    openDatabase({ file: moved }).close();
    expect(plantsIn(moved)).toEqual([1n, 3n]);
  });

  test.each(["EXCLUSIVE", "IMMEDIATE"])("fails with a message when BEGIN %s has locked the file", (lock) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const other = new DatabaseSync(file);
    other.exec(`BEGIN ${lock}`);
    const begunMs = performance.now();
    const refused = /another process holds the lock on the file$/;
    expect(() => openDatabase({ file, migrates: true, lockTimeoutMs: 10 })).toThrow(refused);
    expect(performance.now() - begunMs).toBeLessThan(lockTimeoutMsDefault);
    other.close();
  });

  test("waits at most the lock timeout for a reader without WAL mode", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, migrates: true }).close();
    using reader = new DatabaseSync(file);
    reader.exec("PRAGMA journal_mode = DELETE; BEGIN; SELECT count(*) FROM plants");
    const begunMs = performance.now();
    expect(() => openDatabase({ file, lockTimeoutMs: 10 })).toThrow(/another process holds the lock on the file$/);
    expect(performance.now() - begunMs).toBeLessThan(lockTimeoutMsDefault);
  });

  test("does not change another program's database", () => {
    using folder = createTempFolder();
    const file = folder.file("other.db");
    writeDatabase(file, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    expect(() => openDatabase({ file })).toThrow(StoreOpenError);
    const db = new DatabaseSync(file);
    expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "delete" });
    expect(db.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "t" }]);
    db.close();
  });
});
