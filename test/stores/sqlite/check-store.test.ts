import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { checkSqliteStore } from "../../../src/stores/sqlite/plant-database.ts";
import { runCommand } from "../../support/process/run-command.ts";
import { createTempFolder } from "@protoport/testing/process";

const run = promisify(execFile);

/** Creates a store as after a crash, with a newer schema that is only in its log. */
function leaveLog(file: string): void {
  using db = openDatabase({ file: `${file}.crashing`, migrates: true });
  db.exec("PRAGMA user_version = 99");
  for (const end of ["", "-wal"]) copyFileSync(`${file}.crashing${end}`, `${file}${end}`);
}

/** Creates a store as after a crash in a transaction that can only be rolled back by writing to the file. */
function leaveJournal(file: string): void {
  openDatabase({ file: `${file}.crashing`, plantsWhenCreated: { first: 1n, last: 5_000n } }).close();
  using db = new DatabaseSync(`${file}.crashing`);
  // With one page of cache, changed pages go to the file before the commit.
  db.exec("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM plants WHERE id > 0");
  for (const end of ["", "-journal"]) copyFileSync(`${file}.crashing${end}`, `${file}${end}`);
}

describe("a database file", () => {
  test("is checked together with its log", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = openDatabase({ file, migrates: true });
    db.exec("PRAGMA user_version = 99");
    expect(() => checkSqliteStore(file)).toThrow(/: its schema has version 99, /);
    expect(() => checkSqliteStore(file)).toThrow(expect.objectContaining({ cause: expect.any(Error) }));
  });

  test("with a log is checked through a symbolic link to its folder", () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("volume"));
    leaveLog(folder.file("volume/plants.db"));
    symlinkSync("volume/plants.db", folder.file("latest.db"));
    expect(() => checkSqliteStore(folder.file("latest.db"))).toThrow(/latest\.db: its schema has version 99, /);
  });

  test("with a rollback journal is not checked through a symbolic link to its folder", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("volume"));
    leaveJournal(folder.file("volume/plants.db"));
    symlinkSync("volume/plants.db", folder.file("latest.db"));
    const warning = expect.stringContaining("latest.db has an interrupted transaction");
    expect(checkSqliteStore(folder.file("latest.db"))).toEqual([warning]);
    const { err } = await runCommand(["check"], { DATABASE_URL: `sqlite:${folder.file("latest.db")}` });
    expect(err[0]).toMatch(/^warning: .*latest\.db has an interrupted transaction/);
  });

  test("with a damaged page in a table fails its check", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
    checkSqliteStore(file);
    const bytes = readFileSync(file);
    // The pages after the schema's.
    writeFileSync(file, bytes.fill(0xa5, 8 * 4_096, 9 * 4_096));
    expect(() => checkSqliteStore(file)).toThrow(/^cannot open .*plants\.db: the file is damaged \(.+\)$/);
  });

  test("is checked without a change to the files after a crash", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } });
    db.exec("DELETE FROM plants");
    const files = ["", "-wal"].map((end) => ({
      from: folder.file(`plants.db${end}`),
      to: folder.file(`left.db${end}`),
    }));
    for (const { from, to } of files) copyFileSync(from, to);
    checkSqliteStore(folder.file("left.db"));
    for (const { from, to } of files) expect(readFileSync(to)).toEqual(readFileSync(from));
  });

  test("fails its check if the user has no write permission", async () => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    openDatabase({ file: folder.file("plants.db"), migrates: true }).close();
    mkdirSync(folder.file("open"), { mode: 0o777 });
    chmodSync(folder.file("open"), 0o777);
    openDatabase({ file: folder.file("open/plants.db"), migrates: true }).close();
    chmodSync(folder.path, 0o555);
    chmodSync(folder.file("open/plants.db"), 0o444);
    const { href } = new URL("../../../src/stores/sqlite/plant-database.ts", import.meta.url);
    const program = `
      import { checkSqliteStore } from ${JSON.stringify(href)};
      if (process.getuid() === 0) process.setuid(65534);
      for (const file of process.argv.slice(1))
        try {
          checkSqliteStore(file);
          console.log("it may");
        } catch ({ message }) {
          console.log(message);
        }`;
    const files = [folder.file("plants.db"), folder.file("open/plants.db")];
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program, ...files]);
    chmodSync(folder.path, 0o755);
    expect(stdout.split("\n")).toEqual([
      `cannot open ${files[0]}: the directory ${folder.path} is not writable`,
      `cannot open ${files[1]}: the file is not writable`,
      "",
    ]);
  });

  test("fails its check on a SQLite release that can lose commits", () => {
    using folder = createTempFolder();
    using old = new DatabaseSync(":memory:");
    old.function("sqlite_version", () => "3.51.2");
    const question = old.prepare("SELECT sqlite_version() AS version");
    using _ = vi.spyOn(DatabaseSync.prototype, "prepare").mockReturnValue(question);
    const file = folder.file("plants.db");
    writeFileSync(file, "");
    const message = /plants\.db: SQLite 3\.51\.2, included in this Node\.js, can lose commits/;
    expect(() => checkSqliteStore(file)).toThrow(message);
  });
});
