import { writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { toDescriptorSource } from "../../../../src/forward/descriptor-sources.ts";
import { createUpstream } from "../../../../src/upstreams/index.ts";

afterEach(() => void vi.useRealTimers());

test("a watch that stops during a check does not read its file", async () => {
  using folder = createTempFolder();
  const path = folder.file("set.binpb");
  writeFileSync(path, "");
  const upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const settings = { upstream, isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  const source = toDescriptorSource(pathToFileURL(path), settings);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stopWatch = source.watch?.(() => undefined);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersToNextTimer();
  stopWatch?.();
  // Takes longer than the check's own `stat` call.
  for (let turn = 0; turn < 20; turn++) await stat(path);
  expect(vi.getTimerCount()).toBe(0);
  await upstream.close();
});
