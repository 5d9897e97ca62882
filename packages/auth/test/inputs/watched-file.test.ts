import { appendFileSync, existsSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { describe, expect, test, vi } from "vitest";

import { notParsed, parsed } from "../../src/inputs/parse-result.ts";
import { type FileToWatch, type WatchedFile, watchFile } from "../../src/inputs/watched-file.ts";
import { within } from "../../../testing/src/deadline.ts";
import { createTempFolder, type TempFolder } from "../../../testing/src/process/temp-folder.ts";

interface Watching extends WatchedFile, Disposable {
  /** The texts that were taken, oldest first. */
  readonly taken: readonly string[];
  /** The messages of the log, oldest first. */
  readonly messages: readonly string[];
  /** Resolves once a text was taken that has this in it. */
  took(part: string): Promise<void>;
}

/** Watches a file; a text that says "bad" is refused. */
async function watch(path: string, changes: Partial<FileToWatch> = {}): Promise<Watching> {
  const taken: string[] = [];
  const messages: string[] = [];
  const waiting: (() => void)[] = [];
  const tell = (fields: object, message: string): void => {
    expect(fields).toMatchObject({ path });
    messages.push(message);
  };
  const log = { info: tell, warn: tell };
  const take = (text: string): ReturnType<FileToWatch["take"]> => {
    if (text.includes("bad")) return notParsed("it is bad");
    taken.push(text);
    for (const look of waiting) look();
    return parsed({});
  };
  const opened = await watchFile({ paths: [path], what: "file", limitBytes: 1_000_000, take, log, ...changes });
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const took = (part: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (taken.some((text) => text.includes(part))) resolve();
      };
      waiting.push(look);
      look();
    });
  const close = (): void => opened.value.close();
  const reload = (): Promise<void> => opened.value.reload();
  const watching = {
    taken,
    messages,
    reload,
    close,
    took: (part: string) => within(took(part), part),
    [Symbol.dispose]: close,
  };
  return Object.assign(Object.create(opened.value), watching);
}

/** So many quarters of a second by the timers of this process, which are as late as those of the code under test. */
async function quarters(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await new Promise((resolve) => setTimeout(resolve, 250));
}

function fileOf(folder: TempFolder, text: string): string {
  writeFileSync(folder.file("file"), text);
  return folder.file("file");
}

// Side by side, here and below: what takes its time is that the file is looked at now and then.
describe("a file that is watched", () => {
  test.concurrent("is taken within three seconds by the clock of the process, however late that is", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using watching = await watch(path);
    writeFileSync(path, "second");
    const late = quarters(12).then(() => "late");
    expect(await Promise.race([watching.took("second"), late])).toBeUndefined();
  });

  test.concurrent("is not taken while it is being written", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using watching = await watch(path);
    writeFileSync(path, "half");
    const written = new AbortController();
    void quarters(5).then(() => written.abort());
    // Between any two looks there is one of these turns.
    while (!written.signal.aborted) {
      appendFileSync(path, ".");
      await new Promise(setImmediate);
    }
    writeFileSync(path, "whole");
    await watching.took("whole");
    expect(watching.taken).toEqual(["first", "whole"]);
  });

  test.concurrent.each<{ name: string; change: (path: string, text: string) => void }>([
    {
      name: "in place, and has the size and the time of before",
      change: (path, text) => {
        const { atimeMs, mtimeMs } = statSync(path);
        writeFileSync(path, text);
        utimesSync(path, atimeMs / 1000, mtimeMs / 1000);
      },
    },
    {
      name: "by a link to another one of the same size and times",
      change: (path) => {
        unlinkSync(path);
        symlinkSync(`${path}.other`, path);
      },
    },
  ])("is taken that has long been the same, and then changes $name", async ({ change }) => {
    using folder = createTempFolder();
    const path = folder.file("link");
    const [first, other] = [`${path}.first`, `${path}.other`];
    // The clock of a file system has ticks; both are written in the same one.
    do {
      for (const file of [first, other]) {
        writeFileSync(file, file === first ? "first" : "other");
        utimesSync(file, 1, 1);
      }
    } while (statSync(first).ctimeMs !== statSync(other).ctimeMs);
    symlinkSync(first, path);
    using watching = await watch(path);
    // A file that is younger than 2 s is read at each look.
    await quarters(12);
    change(path, "other");
    await watching.took("other");
  });

  // The times of a file in /proc never tell that it has changed: as if each change came in the same tick of the clock.
  test.runIf(existsSync("/proc/self/comm"))("is read again while it is young, whatever its times say", async () => {
    const path = "/proc/self/comm";
    // While it is open the system keeps its times, which are those of the first look at it, unless it is cut short.
    const inPlace = { flag: "r+" };
    await using _ = await open(path);
    using watching = await watch(path);
    const [before = ""] = watching.taken;
    try {
      writeFileSync(path, "second", inPlace);
      await watching.reload();
      writeFileSync(path, "third", inPlace);
      await watching.took("third");
    } finally {
      writeFileSync(path, before, inPlace);
    }
  });

  // This one says how late timers of the process may be, in nanoseconds.
  test.runIf(existsSync("/proc/self/timerslack_ns"))(
    "is not read again once it is old",
    { concurrent: true },
    async () => {
      const path = "/proc/self/timerslack_ns";
      await using _ = await open(path);
      using watching = await watch(path);
      const [before = ""] = watching.taken;
      await quarters(12);
      try {
        writeFileSync(path, String(Number(before) + 1), { flag: "r+" });
        await quarters(3);
        expect(watching.taken).toEqual([before]);
      } finally {
        writeFileSync(path, before, { flag: "r+" });
      }
    },
  );

  test("may have as many bytes as its limit, and no more", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "12345");
    using watching = await watch(path, { limitBytes: 5 });
    expect(watching.taken).toEqual(["12345"]);
    await expect(watch(path, { limitBytes: 4 })).rejects.toThrow(`${path} is larger than 4 bytes`);
  });

  const again = "file reverted to the content in use";
  const refused = "file not reloaded, keeping the previous one";
  const reloaded = "file reloaded";

  test("tells the log of each change once, for the worse and for the better", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using watching = await watch(path, { limitBytes: 10 });
    for (const text of ["first", "bad", "bad", "first", "bad", "second", "bad", "second", "x".repeat(11), "first"]) {
      writeFileSync(path, text);
      await watching.reload();
    }
    expect(watching.messages).toEqual([refused, again, refused, reloaded, refused, again, refused, reloaded]);
    expect(watching.taken).toEqual(["first", "second", "first"]);
  });

  test.concurrent("that was refused is tried again without a change of it", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    let isTimely = false;
    const taken: string[] = [];
    const take = (text: string): ReturnType<FileToWatch["take"]> => {
      if (text === "second" && !isTimely) return notParsed("it is too early");
      taken.push(text);
      return parsed({});
    };
    using watching = await watch(path, { take, retryRejectedMs: 0 });
    writeFileSync(path, "second");
    await watching.reload();
    expect(watching.lastReload).toMatchObject({ path, succeeded: false });
    isTimely = true;
    await expect.poll(() => taken, { timeout: 10_000 }).toEqual(["first", "second"]);
    await expect.poll(() => watching.messages).toEqual([refused, reloaded]);
    expect(watching.lastReload).toMatchObject({ path, succeeded: true });
  });

  test.concurrent("that stays refused is logged again, each time that its repetition is due", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    using seldom = await watch(path);
    using watching = await watch(path, { retryRejectedMs: 0, repeatRejectionMs: 0 });
    writeFileSync(path, "bad");
    await expect.poll(() => watching.messages.length, { timeout: 10_000 }).toBeGreaterThan(2);
    expect(new Set(watching.messages)).toEqual(new Set([refused]));
    expect(seldom.messages).toEqual([refused]);
  });

  test("tells of its last reload whether it succeeded, and when one did", async () => {
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

  test("names twenty of its problems in the log", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "0");
    const reported: object[] = [];
    const problems = Array.from({ length: 100 }, (_, n) => `line ${n}`);
    using watching = await watch(path, {
      take: (text) => (text === "0" ? parsed({}) : notParsed(...problems)),
      log: { info: () => {}, warn: (fields) => reported.push(fields) },
    });
    writeFileSync(path, "1");
    await watching.reload();
    expect(reported).toEqual([{ errorCode: "ERR_FILE_REFUSED", path, problems: problems.slice(0, 20) }]);
  });

  test("is still followed after taking it has failed", async () => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    const taken: string[] = [];
    using watching = await watch(path, {
      take: (text) => {
        if (text === "fault") throw new Error("a fault");
        taken.push(text);
        return parsed({});
      },
    });
    for (const text of ["fault", "second"]) {
      writeFileSync(path, text);
      await watching.reload();
    }
    expect({ taken, messages: watching.messages }).toEqual({
      taken: ["first", "second"],
      messages: [refused, reloaded],
    });
  });

  test.concurrent.each<{ name: string; close: (watching: Watching) => Promise<void> }>([
    { name: "at rest", close: async (watching) => watching.close() },
    {
      name: "while it is being looked at",
      close: async (watching) => {
        const looking = watching.reload();
        watching.close();
        await looking;
      },
    },
  ])("is let go when it is closed $name", async ({ close }) => {
    using folder = createTempFolder();
    const path = fileOf(folder, "first");
    const watching = await watch(path);
    await close(watching);
    // One that is opened later shows that both had the time to look.
    using later = await watch(path);
    for (const text of ["second", "third"]) {
      writeFileSync(path, text);
      await later.took(text);
    }
    expect(watching.taken).toEqual(["first"]);
  });
});
