import { readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { startNode } from "../../support/command-line.ts";
import { plantsIn } from "../../support/sqlite-file.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

// It creates a file with plants 1 to 1,000, and deletes as many as it is told.
const program = fileURLToPath(new URL("../../support/delete-one-by-one.ts", import.meta.url));

describe("the storage thread", () => {
  test.each([
    { name: "a module that is loaded first", flags: ["--import", "./first.mjs"], environment: {} },
    { name: "such a module in NODE_OPTIONS", flags: [], environment: { NODE_OPTIONS: "--import=./first.mjs" } },
    { name: "a profiler", flags: ["--cpu-prof"], environment: {} },
  ])("works without what its process was started with: $name", async ({ flags, environment }) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("first.mjs"), 'process._rawDebug("loaded");');
    const file = folder.file("plants.db");
    await using run = startNode([...flags, program, file, "2"], folder.path, environment);
    expect(await run.end()).toBe(0);
    expect(plantsIn(file)).toHaveLength(998);
    const profiles = readdirSync(folder.path).filter((name) => name.endsWith(".cpuprofile"));
    expect([...profiles, ...run.stderr().matchAll(/^loaded$/gm)]).toHaveLength(1);
  });
});
