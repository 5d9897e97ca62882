import { once } from "node:events";
import { linkSync, rmSync, statSync, truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Upkeep } from "../../../src/stores/contract/store-options.ts";
import type { BatchRow } from "../../../src/stores/sqlite/delete-batch.ts";
import { replyTimeoutMs, type StorageReply, StorageThread } from "../../../src/stores/sqlite/storage-thread.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

const batchOf = (id: bigint): BatchRow[] => [[id, "", "", null]];

/** The reply to a check of a healthy file. */
function withName(hasSecondName: boolean): object {
  return { outcomes: [], problem: undefined, file: { hasSecondName, areCheckpointsStalled: false } };
}

test("the storage thread reports its exit to later requests", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  await using thread = closing(await StorageThread.start({ file: folder.file("plants.db"), migrates: true }));
  const [worker] = await started;
  await worker.terminate();
  await expect(thread.exited).resolves.toBe("the storage thread has exited");
  const problem = { text: "the storage thread has exited", isTemporary: false };
  await expect(thread.request("check")).resolves.toEqual({ outcomes: [], problem });
  await expect(thread.request(batchOf(1n))).resolves.toEqual({ outcomes: [], problem });
});

test("the storage thread reports a failure to requests before it exits", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  const thread = await StorageThread.start({ file: folder.file("plants.db"), migrates: true });
  const [worker] = await started;
  const current = thread.request("check");
  worker.emit("error", new Error("away"));
  const reason = "the storage thread failed: Error: away";
  const problem = { text: reason, isTemporary: false };
  await expect(current).resolves.toEqual({ outcomes: [], problem });
  await expect(thread.exited).resolves.toBe(reason);
  await expect(thread.request("check")).resolves.toEqual({ outcomes: [], problem });
  // Node.js sets the thread id to -1 when the thread exits.
  expect(worker.threadId).toBeGreaterThan(0);
  await thread.close();
  expect(worker.threadId).toBe(-1);
  await expect(thread.request("check")).resolves.toEqual({ outcomes: [], problem });
});

test("a prestarted thread does not keep the process running, and serves only one file", async () => {
  using folder = createTempFolder();
  using unref = vi.spyOn(Worker.prototype, "unref");
  StorageThread.prestart();
  expect(unref).toHaveBeenCalledOnce();
  for (const name of ["first.db", "second.db"]) {
    await using thread = closing(await StorageThread.start({ file: folder.file(name), migrates: true }));
    await expect(thread.request("check")).resolves.toEqual(withName(false));
  }
});

test("the storage thread's checks write, wait for the lock, and stop their timer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  await using thread = closing(await StorageThread.start({ file, lockTimeoutMs: 20, migrates: true }));
  using other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  const problem = { text: "another process holds the lock on the file", isTemporary: true };
  await expect(thread.check()).resolves.toMatchObject({ problem });
  other.exec("ROLLBACK");
  const { size } = statSync(`${file}-wal`);
  await expect(thread.check()).resolves.toEqual(withName(false));
  // A commit that writes nothing would succeed on a full disk.
  expect(statSync(`${file}-wal`).size).toBeGreaterThan(size);
  // The timeouts of earlier checks do not apply to later requests.
  const reply = thread.request("check");
  vi.advanceTimersByTime(replyTimeoutMs);
  await expect(reply).resolves.toEqual(withName(false));
});

test("the storage thread reports a second hard link and its removal once, and keeps deleting", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  const events: Upkeep[] = [];
  const options = { file, plantsWhenCreated: { first: 1n, last: 9n } };
  const thread = await StorageThread.start(options, (event) => events.push(event));
  const found = { kind: "second-name-found", problem: expect.stringMatching(/^the file has 2 names/) };
  const gone = { kind: "second-name-gone", lastedMs: expect.any(Number) };
  events.length = 0;
  for (let id = 1n; id < 3n; id++) {
    await expect(thread.request("check")).resolves.toEqual(withName(false));
    expect(events).toEqual([]);
    linkSync(file, folder.file("second.db"));
    for (let check = 0; check < 2; check++) await expect(thread.request("check")).resolves.toEqual(withName(true));
    expect(events).toEqual([found]);
    await expect(thread.request(batchOf(id))).resolves.toMatchObject({ outcomes: ["deleted"] });
    rmSync(folder.file("second.db"));
    for (let check = 0; check < 2; check++) await expect(thread.request("check")).resolves.toEqual(withName(false));
    expect(events).toEqual([found, gone]);
    events.length = 0;
  }
  await thread.close();
});

test("checks report checkpoints that stall for a minute, and a problem once they fail for a minute", async () => {
  using folder = createTempFolder();
  const path = folder.file("plants.db");
  // A minute of the thread takes 60 ms.
  const clock = "const now = performance.now.bind(performance); performance.now = () => 1_000 * now();";
  const module = JSON.stringify(new URL("../../../src/stores/sqlite/worker.ts", import.meta.url).href);
  const worker = new Worker(`${clock} import(${module});`, { eval: true, execArgv: [] });
  const messages: (StorageReply | Upkeep)[] = [];
  worker.on("message", (message) => messages.push(message));
  worker.postMessage({ file: path, plantsWhenCreated: { first: 1n, last: 20_000n } });
  await expect.poll(() => messages, { interval: 5 }).toHaveLength(2);
  using reader = new DatabaseSync(path);
  reader.exec("PRAGMA wal_checkpoint; BEGIN; SELECT count(*) FROM plants");
  using other = new DatabaseSync(path);
  // SQLite does not copy the commit into the file, because of the reader.
  const numbers = "WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 1100)";
  other.exec(`PRAGMA synchronous = OFF; CREATE TABLE pages (bytes BLOB);
    ${numbers} INSERT INTO pages SELECT zeroblob(4000) FROM n`);
  const check = async (): Promise<unknown> => {
    worker.postMessage("check");
    const [reply] = await once(worker, "message");
    return reply;
  };
  await expect(check()).resolves.toEqual(withName(false));
  const file = { areCheckpointsStalled: true };
  await expect.poll(check, { interval: 20 }).toMatchObject({ problem: undefined, file });
  reader.exec("COMMIT");
  // SQLite copies no log into a file that lacks much more than 64 KiB.
  truncateSync(path, 4_096);
  const text = "its write-ahead log cannot be copied into the file: the file is damaged";
  await expect.poll(check, { interval: 20 }).toMatchObject({ problem: { text, isTemporary: false }, file });
  expect(messages).toContainEqual({ kind: "checkpoints-stalled", problem: text });
  await worker.terminate();
});
