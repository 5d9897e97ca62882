import { once } from "node:events";
import { expect, test } from "vitest";
import { StorageThread } from "../../../src/stores/sqlite/storage-thread.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";

test("the storage thread rejects requests after it has exited", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  const thread = await StorageThread.start({ file: folder.file("plants.db"), migrates: true });
  const [worker] = await started;
  await worker.terminate();
  await expect(thread.exited).resolves.toBe("the storage thread has exited");
  await expect(thread.checkWrite()).rejects.toThrow("the storage thread has exited");
  const batch = { ids: [1n], subjects: [""], requestIds: [""] };
  await expect(thread.deleteBatch(batch)).rejects.toThrow("the storage thread has exited");
  await thread.close();
});

test("the storage thread rejects current and new requests when it fails, before it exits", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  const thread = await StorageThread.start({ file: folder.file("plants.db"), migrates: true });
  const [worker] = await started;
  const current = thread.checkWrite();
  worker.emit("error", new Error("away"));
  const reason = "the storage thread failed: Error: away";
  await expect(current).rejects.toThrow(reason);
  await expect(thread.exited).resolves.toBe(reason);
  await expect(thread.checkWrite()).rejects.toThrow(reason);
  // Node.js sets the thread id to -1 when the thread exits.
  expect(worker.threadId).toBeGreaterThan(0);
  await thread.close();
  expect(worker.threadId).toBe(-1);
  await expect(thread.checkWrite()).rejects.toThrow(reason);
});
