import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/temp-folder.ts";

const deletions = 25;

function canTrace(): boolean {
  try {
    execFileSync("strace", ["-o", "/dev/null", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** How often a process that deletes this many plants one by one has waited for the disk. */
function syncsOf(plants: number): number {
  using folder = createTempFolder();
  const trace = folder.file("trace");
  const entry = new URL("../support/delete-one-by-one.ts", import.meta.url).pathname;
  const options = ["-f", "-e", "trace=fdatasync,fsync", "-o", trace];
  execFileSync("strace", [...options, process.execPath, entry, folder.file("plants.db"), String(plants)]);
  return readFileSync(trace, "utf8")
    .split("\n")
    .filter((line) => /f(?:data)?sync\(\d+/.test(line)).length;
}

describe("an acknowledged deletion", () => {
  // kill -9 cannot show that a sync is missing: what a process wrote outlives it in the system's cache.
  test.runIf(canTrace())(
    "has been synced to the disk, each with a call of its own when it is alone",
    { timeout: 60_000 },
    () => {
      expect(syncsOf(deletions) - syncsOf(0)).toBeGreaterThanOrEqual(deletions);
    },
  );
});
