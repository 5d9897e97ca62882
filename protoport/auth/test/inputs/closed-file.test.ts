import { writeFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import { parsed } from "../../src/inputs/text-file.ts";
import { watchFile } from "../../src/inputs/watched-file.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

afterEach(() => void vi.useRealTimers());

test("watchFile makes no further check after close() during a check", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("file"), "text");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const log = { info: () => undefined, warn: () => undefined };
  const paths = [folder.file("file")];
  const opened = await watchFile({ paths, what: "file", limitBytes: 100, apply: () => parsed({}), log });
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersToNextTimer();
  opened.value.close();
  // This check is queued after the running one.
  await opened.value.reload();
  await new Promise(setImmediate);
  expect(vi.getTimerCount()).toBe(0);
});
