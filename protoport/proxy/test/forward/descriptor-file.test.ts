import { existsSync, renameSync, statSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { countRefTimers } from "../../../testing/src/ref-timers.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { toDescriptorSource } from "../../src/forward/descriptor-sources.ts";
import { createUpstream } from "../../src/upstreams/index.ts";

afterEach(() => void vi.useRealTimers());

/** A descriptor file's source after the first read. Dispose of it with `await using`, which stops the watch. */
interface WatchedFile extends AsyncDisposable {
  /** Reads the file. */
  read(): Promise<Uint8Array>;
  /** Checks the file once, and returns how many changes the check reports. */
  check(): Promise<number>;
}

/** Reads a descriptor file and watches it. */
async function watchFile(path: string): Promise<WatchedFile> {
  const upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const settings = { upstream, isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  const source = toDescriptorSource(pathToFileURL(path), settings);
  const { signal } = new AbortController();
  await source.read(signal);
  let changes = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stopWatch = source.watch?.(() => void changes++);
  return {
    read: () => source.read(signal),
    check: async () => {
      const before = changes;
      vi.advanceTimersToNextTimer();
      // The check has ended when the next check is scheduled.
      while (vi.getTimerCount() === 0) await setImmediate();
      return changes - before;
    },
    [Symbol.asyncDispose]: async () => {
      stopWatch?.();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test("a changed descriptor file is reported until it is read", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  await using file = await watchFile(path);
  expect(await file.check()).toBe(0);
  writeFileSync(path, "second, longer");
  // The first check sees a file that may be incomplete.
  expect([await file.check(), await file.check(), await file.check()]).toEqual([0, 1, 1]);
  await file.read();
  expect([await file.check(), await file.check()]).toEqual([0, 0]);
});

test("an overwritten descriptor file is reported, even if its size is unchanged", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  await using file = await watchFile(path);
  const { ino, size, mtimeNs } = statSync(path, { bigint: true });
  // Writes until the time changes, because a file system's clock may tick only every few milliseconds.
  do writeFileSync(path, "other");
  while (statSync(path, { bigint: true }).mtimeNs === mtimeNs);
  expect(statSync(path, { bigint: true })).toMatchObject({ ino, size });
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
});

test("a descriptor file is reported when it disappears and when it returns", async () => {
  using folder = createTempFolder();
  const [path, away] = [folder.write("set.binpb", "first"), folder.file("away.binpb")];
  await using file = await watchFile(path);
  renameSync(path, away);
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
  await expect(file.read()).rejects.toThrow("ENOENT: no such file or directory, open ");
  expect([await file.check(), await file.check()]).toEqual([0, 0]);
  renameSync(away, path);
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
});

// Linux lists the open files of a process.
test.runIf(existsSync("/proc/self/fd"))("a descriptor file that is replaced during a read is reported", async () => {
  using folder = createTempFolder();
  // The file is read in several pieces.
  const first = Buffer.alloc(4 * 1024 * 1024);
  const path = folder.write("set.binpb", first);
  const next = folder.write("next.binpb", "next");
  await using file = await watchFile(path);
  const reading = file.read();
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  void reading.then(settle, settle);
  while (!folder.open().includes(path)) {
    if (isSettled) expect.unreachable(`the file was read before it was replaced: ${(await reading).byteLength} bytes`);
    await setImmediate();
  }
  renameSync(next, path);
  expect((await reading).byteLength).toBe(first.byteLength);
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
});

test("a watch that stops during a check schedules no other", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  const file = await watchFile(path);
  vi.advanceTimersToNextTimer();
  await file[Symbol.asyncDispose]();
  // Takes longer than the check's own `stat` call.
  for (let turn = 0; turn < 20; turn++) await stat(path);
  expect(vi.getTimerCount()).toBe(0);
});

test("the watch of a descriptor file does not keep the process running", async () => {
  using folder = createTempFolder();
  const settings = { isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  await using upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const source = toDescriptorSource(pathToFileURL(folder.write("set.binpb", "")), { ...settings, upstream });
  const timers = countRefTimers();
  const stopWatch = source.watch?.(() => undefined);
  expect(countRefTimers()).toBe(timers);
  stopWatch?.();
});
