import { describe, expect, test } from "vitest";
import { createTempFolder } from "@protoport/testing/process";
import { canTrace, traceCalls } from "../../../protoport/testing/src/process/trace-calls.ts";

const deletions = 25;

/** Returns how often a process that deletes this many plants one by one has waited for the disk. */
function syncsOf(plants: number): number {
  using folder = createTempFolder();
  const entry = new URL("../../support/plants/delete-one-by-one.ts", import.meta.url).pathname;
  const lines = traceCalls(["fdatasync", "fsync"], [entry, folder.file("plants.db"), String(plants)]);
  return lines.filter((line) => /f(?:data)?sync\(\d+/.test(line)).length;
}

// kill -9 cannot show a missing sync, because the system's page cache survives the process.

describe("an acknowledged deletion", () => {
  test.runIf(canTrace())("was synced to the disk with a separate fdatasync call", { timeout: 120_000 }, () => {
    expect(syncsOf(deletions) - syncsOf(0)).toBeGreaterThanOrEqual(deletions);
  });
});
