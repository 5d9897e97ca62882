import { writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { toDescriptorSource } from "../../src/forward/descriptor-sources.ts";
import { createUpstream } from "../../src/upstreams/index.ts";

afterEach(() => void vi.useRealTimers());

test("a changed descriptor file is reported until it is read", async () => {
  using folder = createTempFolder();
  const path = folder.file("set.binpb");
  writeFileSync(path, "first");
  await using upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const settings = { upstream, isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  const source = toDescriptorSource(pathToFileURL(path), settings);
  const { signal } = new AbortController();
  await source.read(signal);
  let changes = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stopWatch = source.watch?.(() => void changes++);
  /** Returns how many changes a check reports. */
  const check = async (): Promise<number> => {
    const before = changes;
    vi.advanceTimersToNextTimer();
    // Takes longer than the check's own `stat` call.
    for (let turn = 0; turn < 20; turn++) await stat(path);
    return changes - before;
  };
  expect(await check()).toBe(0);
  writeFileSync(path, "second, longer");
  // The first check sees a file that may be incomplete.
  expect([await check(), await check(), await check()]).toEqual([0, 1, 1]);
  await source.read(signal);
  expect([await check(), await check()]).toEqual([0, 0]);
  stopWatch?.();
});
