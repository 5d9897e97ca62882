import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { createTempFolder } from "@protoport/testing/process";
import { recordFileSteps, unfinishedNameIn } from "../../support/plants/file-steps.ts";

test("a failed backup keeps a file created during the backup", () => {
  using folder = createTempFolder();
  const [file, copy] = [folder.file("plants.db"), folder.file("copy.db")];
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  {
    using _ = recordFileSteps((step) => step.startsWith("link ") && writeFileSync(copy, "another backup"));
    expect(() => backUp(file, copy)).toThrow(`cannot write ${copy}: `);
  }
  expect(readFileSync(copy, "utf8")).toBe("another backup");
});

test("a failed backup removes its copy if the name is not durable", () => {
  using folder = createTempFolder();
  using other = createTempFolder();
  const [file, copy] = [folder.file("plants.db"), other.file("copy.db")];
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  {
    using _ = recordFileSteps((step) => {
      if (step === `sync ${basename(other.path)}`) throw new Error("the disk failed");
    });
    expect(() => backUp(file, copy)).toThrow(`cannot write ${copy}: the disk failed`);
  }
  expect(readdirSync(other.path)).toEqual([]);
});

test.each(["", "-wal", "-journal"])('a backup does not replace or use an existing file with the end "%s"', (end) => {
  using folder = createTempFolder();
  const [file, copy] = [folder.file("plants.db"), folder.file("copy.db")];
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  folder.write(`copy.db${end}`, "left by a killed server");
  expect(() => backUp(file, copy)).toThrow(`cannot write ${copy}${end}: the file already exists`);
  expect(readFileSync(`${copy}${end}`, "utf8")).toBe("left by a killed server");
  expect(existsSync(copy)).toBe(end === "");
});

test("a backup syncs the copy before the final rename, and the folder after it", () => {
  using folder = createTempFolder();
  using other = createTempFolder();
  const file = folder.file("plants.db");
  openDatabase({ file, migrates: true }).close();
  using recorded = recordFileSteps();
  backUp(file, other.file("copy.db"));
  const unfinished = unfinishedNameIn(recorded.steps);
  const [sync, link] = [`sync ${unfinished}`, `link ${unfinished} copy.db`];
  expect(recorded.steps).toEqual([sync, link, `sync ${basename(other.path)}`, `remove ${unfinished}`]);
});

test("a backup leaves no files behind when the copy cannot be written", () => {
  using folder = createTempFolder();
  openDatabase({ file: folder.file("plants.db"), migrates: true }).close();
  expect(() => backUp(folder.file("plants.db"), folder.file("nowhere/copy.db"))).toThrow(
    expect.objectContaining({ message: expect.stringMatching(/cannot write .*nowhere/), cause: expect.any(Error) }),
  );
  expect(() => backUp(folder.file("none.db"), folder.file("copy.db"))).toThrow(
    /file not found in \S+: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it$/,
  );
  expect(readdirSync(folder.path)).toEqual(["plants.db"]);
});

test("a backup leaves no files behind when the store is damaged", () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
  const bytes = readFileSync(file);
  bytes.fill(0xa5, bytes.length / 2);
  writeFileSync(file, bytes);
  expect(() => backUp(file, folder.file("copy.db"))).toThrow(/cannot write .*copy\.db: the file is damaged$/);
  expect(readdirSync(folder.path)).toEqual(["plants.db"]);
});
