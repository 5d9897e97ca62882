import { once } from "node:events";
import { expect, test } from "vitest";
import { StorageThread } from "../../../src/stores/sqlite/storage-thread.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

test("the storage thread reports its exit to later requests", async () => {
  using folder = createTempFolder();
  const started = once(process, "worker");
  await using thread = closing(await StorageThread.start({ file: folder.file("plants.db"), migrates: true }));
  const [worker] = await started;
  await worker.terminate();
  await expect(thread.exited).resolves.toBe("the storage thread has exited");
  const problem = { text: "the storage thread has exited", isTemporary: false };
  await expect(thread.request("check")).resolves.toEqual({ outcomes: [], problem });
  await expect(thread.request([[1n, "", "", null]])).resolves.toEqual({ outcomes: [], problem });
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
