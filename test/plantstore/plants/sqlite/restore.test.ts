import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../../src/plantstore/plants/sqlite/backup.ts";
import { openDatabase } from "../../../../src/plantstore/plants/sqlite/database.ts";
import { restore } from "../../../../src/plantstore/plants/sqlite/restore.ts";
import { plantsIn, readSqlite } from "../../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "../../../support/process/temp-folder.ts";

/** A backup of plants 1 to 3. */
function makeBackup(folder: TempFolder): string {
  openDatabase({ file: folder.file("first.db"), plantsWhenCreated: { first: 1n, last: 3n } }).close();
  backUp(folder.file("first.db"), folder.file("backup.db"));
  return folder.file("backup.db");
}

describe("restoring a backup", () => {
  const olds: readonly { name: string; leave: (folder: TempFolder, file: string) => void }[] = [
    { name: "there is no store", leave: () => undefined },
    { name: "there is another store", leave: (_folder, file) => openDatabase({ file, migrates: true }).close() },
    {
      name: "a crash has left a log",
      leave: (folder, file) => {
        using db = openDatabase({ file: folder.file("crashing.db"), plantsWhenCreated: { first: 1n, last: 900n } });
        db.exec("DELETE FROM plants WHERE id > 5");
        for (const end of ["", "-wal", "-shm"]) copyFileSync(`${folder.file("crashing.db")}${end}`, `${file}${end}`);
      },
    },
    { name: "a log is left without its file", leave: (_folder, file) => writeFileSync(`${file}-wal`, "left") },
    { name: "the file is damaged", leave: (_folder, file) => writeFileSync(file, "not a database ".repeat(1_000)) },
  ];

  test.each(olds)("puts a copy of it in place, for its user alone, when $name", ({ leave }) => {
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
    openDatabase({ file }).close();
  });

  test("refuses a store that is open, and leaves it as it is", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = makeBackup(folder);
    const db = openDatabase({ file, plantsWhenCreated: { first: 7n, last: 9n } });
    db.exec("DELETE FROM plants WHERE id = 8");
    expect(() => restore(file, backup)).toThrow(
      `cannot restore ${file}: another process has it open; stop the server first`,
    );
    db.close();
    expect(readdirSync(folder.path).toSorted()).toEqual(["backup.db", "first.db", "plants.db"]);
    expect(plantsIn(file)).toEqual([7n, 9n]);
  });

  test.each([
    { name: "is missing", spoil: undefined, problem: /^cannot open .*none\.db: file not found$/ },
    {
      name: "is damaged",
      spoil: (backup: string) => truncateSync(backup, 4_096 * 3),
      problem: /(is damaged|the file is damaged)/,
    },
  ])("leaves the store as it is when the backup $name", ({ spoil, problem }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const backup = spoil === undefined ? folder.file("none.db") : makeBackup(folder);
    spoil?.(backup);
    openDatabase({ file, plantsWhenCreated: { first: 7n, last: 9n } }).close();
    expect(() => restore(file, backup)).toThrow(problem);
    expect(plantsIn(file)).toEqual([7n, 8n, 9n]);
  });
});
