import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { StorageThread } from "../../src/stores/sqlite/storage-thread.ts";
import { beginStorage } from "../../src/server/begin-storage.ts";
import { startCommandLine } from "../support/process/command-line.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";

const url = "sqlite:plants.db";

test.each([
  { words: ["serve"], url, begins: true },
  { words: ["serve", "--port", "0"], url, begins: true },
  { words: ["serve", "--demo"], url: undefined, begins: true },
  { words: ["serve"], url: undefined, begins: false },
  { words: ["serve"], url: "postgres://db/plants", begins: false },
  { words: ["serve", "--database-url=memory:"], url, begins: false },
  { words: ["serve", "--database-url", "memory:"], url, begins: false },
  { words: ["serve", "--print-config"], url, begins: false },
  { words: ["serve", "--help"], url, begins: false },
  { words: ["import", "ids"], url, begins: false },
])("$words with $url begins a storage thread: $begins", async ({ words, url: database, begins }) => {
  using folder = createTempFolder();
  const workers: unknown[] = [];
  const count = (worker: unknown): number => workers.push(worker);
  process.on("worker", count);
  beginStorage(words, { DATABASE_URL: database });
  // Node tells of a thread in the next turn.
  await new Promise(setImmediate);
  expect(workers).toHaveLength(begins ? 1 : 0);
  const thread = await StorageThread.start({ file: folder.file("plants.db"), migrates: true });
  // It is the one that was begun.
  expect(workers).toHaveLength(1);
  process.off("worker", count);
  await thread.close();
});

test("a thread that was begun opens nothing, and keeps no process, when the configuration is wrong", async () => {
  using folder = createTempFolder();
  const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, PORT: "none" };
  await using run = startCommandLine(["serve"], folder.path, environment);
  expect(await run.end()).toBe(78);
  expect(existsSync(folder.file("plants.db"))).toBe(false);
});

test("a thread that cannot begin is told of in a line, as any store that does not open", async () => {
  using folder = createTempFolder();
  const environment = {
    DATABASE_URL: `sqlite:${folder.file("plants.db")}`,
    NODE_OPTIONS: "--permission --allow-fs-read=* --allow-fs-write=*",
  };
  await using run = startCommandLine(["serve"], folder.path, environment);
  expect(await run.end()).toBe(1);
  expect(run.stderr()).toMatch(/^plantstore: Access to this API has been restricted/m);
});

test("a thread that was begun and has failed is why the store does not open", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  StorageThread.begin();
  const [worker] = await started;
  await worker.terminate();
  const opened = StorageThread.start({ file: folder.file("plants.db") });
  await expect(opened).rejects.toThrow("the storage thread has ended");
});
