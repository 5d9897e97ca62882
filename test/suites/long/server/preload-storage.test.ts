import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { StorageThread } from "../../../../src/stores/sqlite/storage-thread.ts";
import { preloadStorage } from "../../../../src/server/preload-storage.ts";
import { startCommandLine } from "../../../support/process/command-line.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";

const url = "sqlite:plants.db";

test.each([
  { name: "starts a thread for serve with an SQLite store", words: ["serve"], url, begins: true },
  { name: "starts a thread for serve with a flag", words: ["serve", "--port", "0"], url, begins: true },
  { name: "starts a thread for a demo", words: ["serve", "--demo"], url: undefined, begins: true },
  { name: "starts no thread without a database URL", words: ["serve"], url: undefined, begins: false },
  { name: "starts no thread for PostgreSQL", words: ["serve"], url: "postgres://db/plants", begins: false },
  {
    name: "starts no thread for --database-url=memory:",
    words: ["serve", "--database-url=memory:"],
    url,
    begins: false,
  },
  {
    name: "starts no thread for --database-url memory:",
    words: ["serve", "--database-url", "memory:"],
    url,
    begins: false,
  },
  { name: "starts no thread for serve --print-config", words: ["serve", "--print-config"], url, begins: false },
  { name: "starts no thread for serve --help", words: ["serve", "--help"], url, begins: false },
  { name: "starts no thread for import", words: ["import", "ids"], url, begins: false },
])("preloadStorage $name in advance", async ({ words, url: database, begins }) => {
  using folder = createTempFolder();
  const workers: unknown[] = [];
  const count = (worker: unknown): number => workers.push(worker);
  process.on("worker", count);
  preloadStorage(words, { DATABASE_URL: database });
  // Node emits the event in the event loop's next turn.
  await new Promise(setImmediate);
  expect(workers).toHaveLength(begins ? 1 : 0);
  const thread = await StorageThread.start({ file: folder.file("plants.db"), migrates: true });
  // The store uses the thread that is already running.
  expect(workers).toHaveLength(1);
  process.off("worker", count);
  await thread.close();
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
