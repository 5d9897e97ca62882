import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { StorageThread } from "../../../../src/stores/sqlite/storage-thread.ts";
import { preloadStorage } from "../../../../src/server/preload-storage.ts";
import { startCommandLine } from "../../../support/process/command-line.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

test("a store uses the thread that preloadStorage has started", async () => {
  using folder = createTempFolder();
  const workers: unknown[] = [];
  const count = (worker: unknown): number => workers.push(worker);
  process.on("worker", count);
  preloadStorage(["serve"], { DATABASE_URL: "sqlite:plants.db" });
  await using _ = closing(await StorageThread.start({ file: folder.file("plants.db"), migrates: true }));
  expect(workers).toHaveLength(1);
  process.off("worker", count);
});

test("serve with an invalid configuration exits without opening the database", async () => {
  using folder = createTempFolder();
  const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, PORT: "none" };
  await using run = startCommandLine(["serve"], folder.path, environment);
  expect(await run.end()).toBe(78);
  expect(existsSync(folder.file("plants.db"))).toBe(false);
});

test("serve reports a storage thread that cannot start", async () => {
  using folder = createTempFolder();
  const environment = {
    DATABASE_URL: `sqlite:${folder.file("plants.db")}`,
    NODE_OPTIONS: "--permission --allow-fs-read=* --allow-fs-write=*",
  };
  await using run = startCommandLine(["serve"], folder.path, environment);
  expect(await run.end()).toBe(1);
  expect(run.stderr()).toMatch(/^plantstore: Access to this API has been restricted/m);
});

test("StorageThread.start rejects when the thread has already failed", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  StorageThread.prestart();
  const [worker] = await started;
  await worker.terminate();
  const opened = StorageThread.start({ file: folder.file("plants.db") });
  await expect(opened).rejects.toThrow("the storage thread has exited");
});
