import { readFileSync, statSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { openPlantDatabase, openPlantStore, openSqliteStore } from "../../../src/stores/index.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

test("a process opens a file again only after closing its store", async () => {
  using folder = createTempFolder();
  const [file, link] = [folder.file("plants.db"), folder.file("link.db")];
  const first = await openSqliteStore({ file, migrates: true });
  symlinkSync(file, link);
  const opened = openPlantStore({ kind: "sqlite", path: link });
  const want = `cannot open ${link}: this process has already opened the file; share the store`;
  await expect(opened).rejects.toThrow(want);
  await first.close();
  await using _ = closing(await openSqliteStore({ file }));
  await first.close();
  await expect(openSqliteStore({ file })).rejects.toThrow("already opened");
});

test("a process cannot open a file twice through a missing folder", async () => {
  using folder = createTempFolder();
  await using _ = closing(await openSqliteStore({ file: folder.file("plants.db"), migrates: true }));
  const second = openSqliteStore({ file: `${folder.path}/nowhere/../plants.db` });
  await expect(second).rejects.toThrow("this process has already opened the file");
});

test("a process cannot create a file under two names of its folder", async () => {
  using folder = createTempFolder();
  symlinkSync(folder.path, folder.file("link"));
  const first = openSqliteStore({ file: folder.file("link/plants.db"), migrates: true });
  const second = openSqliteStore({ file: folder.file("plants.db"), migrates: true });
  await expect(second).rejects.toThrow("this process has already opened the file");
  await (await first).close();
});

test("a process can open a file again after opening has failed", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  await expect(openSqliteStore({ file })).rejects.toThrow("file not found");
  await (await openSqliteStore({ file, migrates: true })).close();
});

/** Returns the locks of this process on a file (proc_locks(5)), without their numbers. */
function locksOn(file: string): readonly string[] {
  const { ino } = statSync(file);
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  return lines
    .filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `))
    .map((line) => line.replace(/^\d+: /, ""));
}

test("a store keeps its locks when its process reads and imports plants", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  await using _ = closing(await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 3n } }));
  const locks = locksOn(`${file}-shm`);
  expect(locks).not.toEqual([]);
  const database = await openPlantDatabase({ kind: "sqlite", path: file });
  const plantImport = await database.startImport();
  await plantImport.add([4n]);
  await plantImport[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
  expect(locksOn(`${file}-shm`)).toEqual(locks);
});

test("an open database keeps its locks when its process imports plants", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  await (await openSqliteStore({ file, migrates: true })).close();
  await using database = await openPlantDatabase({ kind: "sqlite", path: file });
  const locks = locksOn(`${file}-shm`);
  expect(locks).not.toEqual([]);
  await (await database.startImport())[Symbol.asyncDispose]();
  expect(locksOn(`${file}-shm`)).toEqual(locks);
  await expect(openSqliteStore({ file })).rejects.toThrow("this process has already opened the file");
});
