import { chownSync, copyFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { restore } from "../../../src/stores/sqlite/restore.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";

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
