import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/process/temp-folder.ts";
import { canTrace, traceCalls } from "../support/process/trace-calls.ts";

const deletions = 25;

/** How often a process that deletes this many plants one by one has waited for the disk. */
function syncsOf(plants: number): number {
  using folder = createTempFolder();
  const entry = new URL("../support/plants/delete-one-by-one.ts", import.meta.url).pathname;
  const lines = traceCalls(["fdatasync", "fsync"], [entry, folder.file("plants.db"), String(plants)]);
  return lines.filter((line) => /f(?:data)?sync\(\d+/.test(line)).length;
}

// kill -9 cannot show that a sync is missing: what a process wrote outlives it in the system's cache.

describe("an acknowledged deletion", () => {
  test.runIf(canTrace())(
    "has been synced to the disk, each with a call of its own when it is alone",
    { timeout: 120_000 },
    () => {
      expect(syncsOf(deletions) - syncsOf(0)).toBeGreaterThanOrEqual(deletions);
    },
  );
});

test.runIf(canTrace())("a token that was created is on the disk, and then its file in its folder", () => {
  using folder = createTempFolder();
  const main = new URL("../../src/plantstore/cli/main.ts", import.meta.url).pathname;
  const calls = ["fsync", "fdatasync", "rename", "renameat", "renameat2"];
  const lines = traceCalls(calls, [main, "token", "create", "ci", "--file", folder.file("tokens")]);
  const done = lines.flatMap((line) => {
    const [, call, path] = /(sync|rename)\w*\((?:\d+<|")([^>"]+)/.exec(line) ?? [];
    return path?.startsWith(folder.path) ? [[call, path]] : [];
  });
  expect(done).toEqual([
    ["sync", folder.file("tokens.lock")],
    ["rename", folder.file("tokens.lock")],
    ["sync", folder.path],
  ]);
});
