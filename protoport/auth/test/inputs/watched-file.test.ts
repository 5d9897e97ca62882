import { unlinkSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { withProblems, parsed } from "../../src/inputs/text-file.ts";
import { fileOf, logged, watch } from "./watch.ts";
import { createTempFolder } from "@protoport/testing/process";

// What reload() applies and logs. The checks at intervals are tested in suites/long.

const { reverted, rejected, reloaded } = logged;

test("watchFile rejects a file over the limit", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "12345");
  using watching = await watch(path, { limitBytes: 5 });
  expect(watching.applied).toEqual(["12345"]);
  await expect(watch(path, { limitBytes: 4 })).rejects.toThrow(`${path} is larger than 4 bytes`);
});

test("watchFile applies the contents of several files together", async () => {
  using folder = createTempFolder();
  const paths = ["one", "two"].map((name) => folder.write(name, name));
  const applied: string[] = [];
  const apply = (...texts: readonly string[]) => (applied.push(texts.join()), parsed({}));
  using watching = await watch(paths.join(", "), { paths, apply });
  folder.write("two", "three");
  await watching.reload();
  expect([applied, watching.messages]).toEqual([["one,two", "one,three"], [reloaded]]);
});

test("watchFile logs each state change once", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  using watching = await watch(path, { limitBytes: 10 });
  for (const text of ["first", "bad", "bad", "first", "bad", "second", "bad", "second", "x".repeat(11), "first"]) {
    writeFileSync(path, text);
    await watching.reload();
  }
  expect(watching.messages).toEqual([rejected, reverted, rejected, reloaded, rejected, reverted, rejected, reloaded]);
  expect(watching.applied).toEqual(["first", "second", "first"]);
});

test("watchFile records the last outcome and the last success in lastReload", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  const openedAtMs = Date.now();
  using watching = await watch(path);
  const first = watching.lastReload;
  expect(first).toEqual({ path, succeeded: true, lastSuccessMs: expect.any(Number) });
  expect(first.lastSuccessMs).toBeGreaterThanOrEqual(openedAtMs);
  using clock = vi.spyOn(Date, "now").mockReturnValue(first.lastSuccessMs + 5_000);
  for (const [text, lastReload] of [
    ["bad", { ...first, succeeded: false }],
    ["first", first],
    ["second", { path, succeeded: true, lastSuccessMs: first.lastSuccessMs + 5_000 }],
  ] as const) {
    writeFileSync(path, text);
    await watching.reload();
    expect(watching.lastReload).toEqual(lastReload);
  }
  unlinkSync(path);
  await watching.reload();
  expect(watching.lastReload.succeeded).toBe(false);
  expect(clock).toHaveBeenCalled();
});

test("watchFile logs at most twenty problems of a file", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "0");
  const reported: object[] = [];
  const problems = Array.from({ length: 100 }, (_, n) => `line ${n}`);
  using watching = await watch(path, {
    apply: (text) => (text === "0" ? parsed({}) : withProblems(...problems)),
    log: { info: () => {}, warn: (fields) => reported.push(fields) },
  });
  writeFileSync(path, "1");
  await watching.reload();
  expect(reported).toEqual([{ errorCode: "ERR_FILE_REFUSED", path, problems: problems.slice(0, 20) }]);
});

test("watchFile continues to watch after apply() throws", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  const applied: string[] = [];
  using watching = await watch(path, {
    apply: (text) => {
      if (text === "fault") throw new Error("a defect");
      applied.push(text);
      return parsed({});
    },
  });
  for (const text of ["fault", "second"]) {
    writeFileSync(path, text);
    await watching.reload();
  }
  expect(applied).toEqual(["first", "second"]);
  expect(watching.messages).toEqual([rejected, reloaded]);
});

test.each(["between checks", "during a check"])("watchFile makes no further check after close() %s", async (when) => {
  using folder = createTempFolder();
  const path = fileOf(folder, "text");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  using watching = await watch(path);
  expect(vi.getTimerCount()).toBe(1);
  if (when === "during a check") vi.advanceTimersToNextTimer();
  watching.close();
  expect(vi.getTimerCount()).toBe(0);
  // This check is queued after the running one.
  await watching.reload();
  await new Promise(setImmediate);
  expect(vi.getTimerCount()).toBe(0);
});

test("watchFile applies new content only once two checks see the same file", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  using watching = await watch(path);
  const applied: string[] = [];
  for (const text of ["half", "complete", undefined]) {
    if (text !== undefined) writeFileSync(path, text);
    vi.advanceTimersToNextTimer();
    while (vi.getTimerCount() === 0) await new Promise(setImmediate);
    applied.push(watching.applied.join());
  }
  expect(applied).toEqual(["first", "first", "first,complete"]);
});
