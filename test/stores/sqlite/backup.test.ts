import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { backUp } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { createTempFolder } from "@protoport/testing/process";
import { recordFileSteps } from "../../support/plants/file-steps.ts";

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

test.each(["-wal", "-journal"])("a backup does not use a leftover %s file", (end) => {
  using folder = createTempFolder();
  const [file, copy] = [folder.file("plants.db"), folder.file("copy.db")];
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  folder.write(`copy.db${end}`, "left by a killed server");
  expect(() => backUp(file, copy)).toThrow(`cannot write ${copy}${end}: the file already exists`);
  expect(existsSync(copy)).toBe(false);
});
