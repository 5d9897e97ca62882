import { existsSync, linkSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { BatchRow } from "../../../../../src/stores/sqlite/delete-batch.ts";
import { StorageThread } from "../../../../../src/stores/sqlite/storage-thread.ts";
import { closing, createTempFolder, startNode } from "@protoport/testing/process";
import { plantsIn } from "../../../../support/plants/sqlite-file.ts";

// This program creates a file with plants 1 to 1,000, and deletes the given number of plants.
const program = fileURLToPath(new URL("../../../../support/plants/delete-one-by-one.ts", import.meta.url));

const batchOf = (id: bigint): BatchRow[] => [[id, "", "", null]];

describe("the storage thread", () => {
  test("finds a second name of a relative path after chdir()", async () => {
    using folder = createTempFolder();
    const file = relative(process.cwd(), folder.file("plants.db"));
    await using thread = closing(await StorageThread.start({ file, migrates: true }));
    linkSync(file, folder.file("second.db"));
    const before = process.cwd();
    process.chdir("/");
    try {
      const healthy = { problem: undefined, file: { hasSecondName: true } };
      await expect(thread.request("check")).resolves.toMatchObject(healthy);
    } finally {
      process.chdir(before);
    }
  });

  test("closes the file, so that SQLite removes the log", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const thread = await StorageThread.start({ file, migrates: true });
    expect(existsSync(`${file}-wal`)).toBe(true);
    await thread.close();
    expect(existsSync(`${file}-wal`)).toBe(false);
  });

  test("detects a moved file without a write", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await using thread = closing(await StorageThread.start({ file, migrates: true }));
    renameSync(file, `${file}.moved`);
    const problem = { text: "the file was moved, replaced or deleted", isTemporary: false, needsOperator: true };
    await expect(thread.request("check")).resolves.toMatchObject({ problem });
  });

  test("replies to all concurrent requests", async () => {
    using folder = createTempFolder();
    const options = { file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } };
    await using thread = closing(await StorageThread.start(options));
    const deletionOf = (id: bigint) => thread.request(batchOf(id));
    const replies = Promise.all([deletionOf(1n), thread.request("check"), deletionOf(3n)]);
    const want = [{ outcomes: ["deleted"] }, { problem: undefined }, { outcomes: ["absent"] }];
    await expect(replies).resolves.toMatchObject(want);
  });

  test("uses its process's compile cache", async () => {
    using folder = createTempFolder();
    const environment = { NODE_COMPILE_CACHE: folder.file("compiled") };
    await using run = startNode([program, folder.file("plants.db"), "0"], folder.path, environment);
    expect(await run.end()).toBe(0);
    // Node.js creates a folder for its version inside the process's cache folder.
    const kept = readdirSync(folder.file("compiled"), { recursive: true, encoding: "utf8" });
    expect(kept.filter((name) => name.split("/").length === 3)).not.toEqual([]);
  });

  test("starts without its process's preloaded modules and profiler", async () => {
    using folder = createTempFolder();
    for (const name of ["flag", "variable"]) writeFileSync(folder.file(`${name}.mjs`), `process._rawDebug("${name}");`);
    const file = folder.file("plants.db");
    const flags = ["--import", "./flag.mjs", "--cpu-prof"];
    const environment = { NODE_OPTIONS: "--import=./variable.mjs" };
    await using run = startNode([...flags, program, file, "2"], folder.path, environment);
    expect(await run.end()).toBe(0);
    expect(plantsIn(file)).toHaveLength(998);
    // Each module was loaded only by the process, not by the thread.
    const found = [...run.stderr().matchAll(/^(?:flag|variable)$/gm)].map(([word]) => word).toSorted();
    expect(found).toEqual(["flag", "variable"]);
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".cpuprofile"))).toHaveLength(1);
  });
});
