import { appendFileSync, existsSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { describe, expect, test, vi } from "vitest";

import { notParsed, parsed } from "../../../../src/inputs/parse-result.ts";
import { type FileToWatch, type WatchedFile, watchFile } from "../../../../src/inputs/watched-file.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { createTempFolder, type TempFolder } from "../../../../../testing/src/process/temp-folder.ts";

interface Watching extends WatchedFile, Disposable {
  /** The contents that were applied, oldest first. */
  readonly applied: readonly string[];
  /** The log's messages, oldest first. */
  readonly messages: readonly string[];
  /** Resolves once a content that includes this text was applied. */
  hasApplied(part: string): Promise<void>;
}

/** Watches a file. Content that includes "bad" is rejected. */
async function watch(path: string, changes: Partial<FileToWatch> = {}): Promise<Watching> {
  const applied: string[] = [];
  const messages: string[] = [];
  const listeners: (() => void)[] = [];
  const record = (fields: object, message: string): void => {
    expect(fields).toMatchObject({ path });
    messages.push(message);
  };
  const log = { info: record, warn: record };
  const apply = (text: string): ReturnType<FileToWatch["apply"]> => {
    if (text.includes("bad")) return notParsed("it is bad");
    applied.push(text);
    for (const listener of listeners) listener();
    return parsed({});
  };
  const opened = await watchFile({ paths: [path], what: "file", limitBytes: 1_000_000, apply, log, ...changes });
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const hasApplied = (part: string): Promise<void> =>
    new Promise((resolve) => {
      const listener = (): void => {
        if (applied.some((text) => text.includes(part))) resolve();
      };
      listeners.push(listener);
      listener();
    });
  const close = (): void => opened.value.close();
  const reload = (): Promise<void> => opened.value.reload();
  const watching = {
    applied,
    messages,
    reload,
    close,
    hasApplied: (part: string) => within(hasApplied(part), part),
    [Symbol.dispose]: close,
  };
  return Object.assign(Object.create(opened.value), watching);
}

/** Waits this many quarters of a second with timers in this process, which are as late as the tested code's. */
async function waitQuarterSeconds(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await new Promise((resolve) => setTimeout(resolve, 250));
}

function fileOf(folder: TempFolder, text: string): string {
  writeFileSync(folder.file("file"), text);
  return folder.file("file");
}

// Concurrent, because these tests mostly wait for the next check.
describe("a watched file", () => {
  test.concurrent("is applied within three seconds after a change", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using watching = await watch(path);
    writeFileSync(path, "second");
    const late = waitQuarterSeconds(12).then(() => "late");
    expect(await Promise.race([watching.hasApplied("second"), late])).toBeUndefined();
  });

  test.concurrent("is not applied while it is being written", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using watching = await watch(path);
    writeFileSync(path, "half");
    const written = new AbortController();
    void waitQuarterSeconds(5).then(() => written.abort());
    // At least one of these writes happens between any two checks.
    while (!written.signal.aborted) {
      appendFileSync(path, ".");
      await new Promise(setImmediate);
    }
    writeFileSync(path, "complete");
    await watching.hasApplied("complete");
    expect(watching.applied).toEqual(["first", "complete"]);
  });

  test.concurrent.each<{ name: string; change: (path: string, text: string) => void }>([
    {
      name: "a change in place that keeps size and modification time",
      change: (path, text) => {
        const { atimeMs, mtimeMs } = statSync(path);
        writeFileSync(path, text);
        utimesSync(path, atimeMs / 1000, mtimeMs / 1000);
      },
    },
    {
      name: "a link to another file of the same size and times",
      change: (path) => {
        unlinkSync(path);
        symlinkSync(`${path}.other`, path);
      },
    },
  ])("is applied after $name, although unchanged for long", async ({ change }) => {
    using folder = createTempFolder();
    const path = folder.file("link");
    const [first, other] = [`${path}.first`, `${path}.other`];
    // A file system's clock has ticks, and both files are written in the same tick.
    do {
      for (const file of [first, other]) {
        writeFileSync(file, file === first ? "first" : "other");
        utimesSync(file, 1, 1);
      }
    } while (statSync(first).ctimeMs !== statSync(other).ctimeMs);
    symlinkSync(first, path);
    using watching = await watch(path);
    // A file that changed less than 2 s ago is read by each check.
    await waitQuarterSeconds(12);
    change(path, "other");
    await watching.hasApplied("other");
  });

  // A file's timestamps in /proc do not change when it is written, as if all writes were in one clock tick.
  test.runIf(existsSync("/proc/self/comm"))(
    "is read again shortly after a write, even with unchanged timestamps",
    async () => {
      const path = "/proc/self/comm";
      // While the file is open, the kernel keeps the timestamps from the first check, unless the file is truncated.
      const inPlace = { flag: "r+" };
      await using _ = await open(path);
      using watching = await watch(path);
      const [before = ""] = watching.applied;
      try {
        writeFileSync(path, "second", inPlace);
        await watching.reload();
        writeFileSync(path, "third", inPlace);
        await watching.hasApplied("third");
      } finally {
        writeFileSync(path, before, inPlace);
      }
    },
  );

  // The timer slack is a number of nanoseconds.
  test.runIf(existsSync("/proc/self/timerslack_ns"))(
    "is not read again once it is old",
    { concurrent: true },
    async () => {
      const path = "/proc/self/timerslack_ns";
      await using _ = await open(path);
      using watching = await watch(path);
      const [before = ""] = watching.applied;
      await waitQuarterSeconds(12);
      try {
        writeFileSync(path, String(Number(before) + 1), { flag: "r+" });
        await waitQuarterSeconds(3);
        expect(watching.applied).toEqual([before]);
      } finally {
        writeFileSync(path, before, { flag: "r+" });
      }
    },
  );

  test("is rejected when it is larger than its limit", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "12345");
    using watching = await watch(path, { limitBytes: 5 });
    expect(watching.applied).toEqual(["12345"]);
    await expect(watch(path, { limitBytes: 4 })).rejects.toThrow(`${path} is larger than 4 bytes`);
  });

  const reverted = "file reverted to the content in use";
  const rejected = "file not reloaded, keeping the previous one";
  const reloaded = "file reloaded";

  test("logs each state change once", async () => {
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

  test.concurrent("that was rejected is tried again although it has not changed", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    let isAccepted = false;
    const applied: string[] = [];
    const apply = (text: string): ReturnType<FileToWatch["apply"]> => {
      if (text === "second" && !isAccepted) return notParsed("it is too early");
      applied.push(text);
      return parsed({});
    };
    using watching = await watch(path, { apply, retryRejectedMs: 0 });
    writeFileSync(path, "second");
    await watching.reload();
    expect(watching.lastReload).toMatchObject({ path, succeeded: false });
    isAccepted = true;
    await expect.poll(() => applied, { timeout: 10_000 }).toEqual(["first", "second"]);
    await expect.poll(() => watching.messages).toEqual([rejected, reloaded]);
    expect(watching.lastReload).toMatchObject({ path, succeeded: true });
  });

  test.concurrent("that stays rejected is logged again at each interval", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using withDefaults = await watch(path);
    using watching = await watch(path, { retryRejectedMs: 0, repeatRejectionMs: 0 });
    writeFileSync(path, "bad");
    await expect.poll(() => watching.messages.length, { timeout: 10_000 }).toBeGreaterThan(2);
    expect(new Set(watching.messages)).toEqual(new Set([rejected]));
    expect(withDefaults.messages).toEqual([rejected]);
  });

  test("reports its last reload's success, and the last success's time", async () => {
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

  test("has at most twenty problems in a log line", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "0");
    const reported: object[] = [];
    const problems = Array.from({ length: 100 }, (_, n) => `line ${n}`);
    using watching = await watch(path, {
      apply: (text) => (text === "0" ? parsed({}) : notParsed(...problems)),
      log: { info: () => {}, warn: (fields) => reported.push(fields) },
    });
    writeFileSync(path, "1");
    await watching.reload();
    expect(reported).toEqual([{ errorCode: "ERR_FILE_REFUSED", path, problems: problems.slice(0, 20) }]);
  });

  test("is still watched after apply has thrown", async () => {
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
    expect({ applied, messages: watching.messages }).toEqual({
      applied: ["first", "second"],
      messages: [rejected, reloaded],
    });
  });

  test.concurrent.each<{ name: string; close: (watching: Watching) => Promise<void> }>([
    { name: "between checks", close: async (watching) => watching.close() },
    {
      name: "during a check",
      close: async (watching) => {
        const checking = watching.reload();
        watching.close();
        await checking;
      },
    },
  ])("whose watch is closed $name is no longer applied", async ({ close }) => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    const watching = await watch(path);
    await close(watching);
    // Once a watch that is opened later has made a check, the closed one would have made a check too.
    using later = await watch(path);
    for (const text of ["second", "third"]) {
      writeFileSync(path, text);
      await later.hasApplied(text);
    }
    expect(watching.applied).toEqual(["first"]);
  });
});
