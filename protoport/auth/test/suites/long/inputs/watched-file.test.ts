import { existsSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { expect, test } from "vitest";
import { withProblems, parsed } from "../../../../src/inputs/text-file.ts";
import type { FileToWatch } from "../../../../src/inputs/watched-file.ts";
import { fileOf, logged, watch } from "../../../inputs/watch.ts";
import { createTempFolder } from "@protoport/testing/process";

/** Waits this many quarters of a second with timers in this process, which are as late as the tested code's. */
async function waitQuarterSeconds(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await new Promise((resolve) => setTimeout(resolve, 250));
}

// Concurrent, because these tests mostly wait for the next check.
test.concurrent("a watched file is applied within three seconds after a change", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  using watching = await watch(path);
  writeFileSync(path, "second");
  const late = waitQuarterSeconds(12).then(() => "late");
  expect(await Promise.race([watching.hasApplied("second"), late])).toBeUndefined();
});

test.concurrent.each<[name: string, change: (path: string, text: string) => void]>(
  // oxfmt-ignore
  [
    ["a write", (path, text) => {
        const { atimeMs, mtimeMs } = statSync(path);
        writeFileSync(path, text);
        utimesSync(path, atimeMs / 1000, mtimeMs / 1000);
      }],
    ["a link change", (path) => {
        unlinkSync(path);
        symlinkSync(`${path}.other`, path);
      }],
  ],
)("a watched file is applied after %s that keeps size and modification time", async (_name, change) => {
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
  "a watched file is read again shortly after a write that keeps its timestamps",
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

// The file contains a number, the timer slack in nanoseconds.
test.runIf(existsSync("/proc/self/timerslack_ns"))(
  "a watched file is no longer read 2 seconds after its last change",
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

test.concurrent("a watched file is applied after a rejection once apply() accepts it", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  let isAccepted = false;
  const applied: string[] = [];
  const apply = (text: string): ReturnType<FileToWatch["apply"]> => {
    if (text === "second" && !isAccepted) return withProblems("it is too early");
    applied.push(text);
    return parsed({});
  };
  using watching = await watch(path, { apply, retryRejectedMs: 0 });
  writeFileSync(path, "second");
  await watching.reload();
  expect(watching.lastReload).toMatchObject({ path, succeeded: false });
  isAccepted = true;
  await expect.poll(() => applied).toEqual(["first", "second"]);
  await expect.poll(() => watching.messages).toEqual([logged.rejected, logged.reloaded]);
  expect(watching.lastReload).toMatchObject({ path, succeeded: true });
});

test.concurrent("a watched file is logged again at each interval while it is rejected", async () => {
  using folder = createTempFolder();
  const path = fileOf(folder, "first");
  using withDefaults = await watch(path);
  using watching = await watch(path, { retryRejectedMs: 0, repeatRejectionMs: 0 });
  writeFileSync(path, "bad");
  await expect.poll(() => watching.messages.length).toBeGreaterThan(2);
  expect(new Set(watching.messages)).toEqual(new Set([logged.rejected]));
  expect(withDefaults.messages).toEqual([logged.rejected]);
});
