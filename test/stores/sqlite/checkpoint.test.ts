import { copyFileSync, truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test, vi } from "vitest";
import { prepareCheckpoint, stalledMs } from "../../../src/stores/sqlite/checkpoint.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { findDamage } from "../../../src/stores/sqlite/problem.ts";
import { reportProblem, type Upkeep } from "../../../src/stores/contract/store-options.ts";
import { createTempFolder, startNode, type TempFolder } from "@protoport/testing/process";

const blocked = {
  kind: "checkpoints-stalled",
  problem: "another connection, such as a long export, reads older content, or holds the lock for checkpoints",
};
const healthy = { problem: undefined, isStalled: false };
const resumed = { kind: "checkpoints-resumed", lastedMs: expect.any(Number) };

/** Opens a new file, and another connection to the file. */
function watch(folder: TempFolder) {
  const file = folder.file("plants.db");
  const db = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 9n } });
  db.exec("CREATE TABLE pages (bytes BLOB)");
  const reader = new DatabaseSync(file);
  const events: Upkeep[] = [];
  const checkpoint = prepareCheckpoint(db);
  const report = reportProblem((event) => events.push(event), "checkpoints-stalled", "checkpoints-resumed");
  return {
    file,
    /** Returns the disk's problem, if any, and whether checkpoints have stalled. */
    check: (nowMs: number) => {
      const stall = checkpoint(nowMs);
      return { problem: stall?.problem, isStalled: report(stall?.reason) };
    },
    events,
    reader,
    /** Commits this many new pages, after which SQLite runs a checkpoint if the log is long enough. */
    commit: (pages: number) => {
      db.exec("BEGIN");
      const insert = db.prepare("INSERT INTO pages VALUES (zeroblob(4000))");
      for (let page = 0; page < pages; page++) insert.run();
      db.exec("COMMIT");
    },
    block: () => reader.exec("BEGIN; SELECT count(*) FROM plants"),
    unblock: () => reader.exec("COMMIT"),
    [Symbol.dispose]: () => {
      reader.close();
      db.close();
    },
  };
}

/** Starts a process that holds a file's lock for checkpoints while it waits for a reader. */
async function holdCheckpointLock(file: string, folder: string): Promise<AsyncDisposable> {
  const program = `const { DatabaseSync } = require("node:sqlite");
    new DatabaseSync(${JSON.stringify(file)}, { timeout: 60_000 }).exec("PRAGMA wal_checkpoint(FULL)");`;
  const run = startNode(["--eval", program], folder);
  using other = new DatabaseSync(file);
  const checkpoint = other.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  await expect.poll(() => checkpoint.get()?.["log"]).toBe(-1);
  return run;
}

describe("the regular checkpoint", () => {
  test("reports blocked checkpoints once, and resumed checkpoints once", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    const { events } = watched;
    for (let nowMs = 0; nowMs < 2; nowMs++) {
      watched.block();
      watched.commit(1_100);
      const check = (sinceMs: number): boolean => {
        const { problem, isStalled } = watched.check(nowMs * 1_000_000 + sinceMs);
        expect(problem).toBeUndefined();
        return isStalled;
      };
      expect([0, 10_000, stalledMs - 1].map(check)).toEqual([false, false, false]);
      expect(events).toEqual([]);
      expect([stalledMs, stalledMs + 10_000].map(check)).toEqual([true, true]);
      expect(events).toEqual([blocked]);
      watched.unblock();
      expect(check(stalledMs + 20_000)).toBe(false);
      expect(events.splice(0)).toEqual([blocked, resumed]);
    }
  });

  test("reports no stall while another connection checkpoints the log", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    for (let nowMs = 0; nowMs <= 3 * stalledMs; nowMs += stalledMs / 2) {
      watched.block();
      watched.commit(1_100);
      expect(watched.check(nowMs)).toEqual(healthy);
      watched.unblock();
      watched.reader.exec("PRAGMA wal_checkpoint(PASSIVE)");
      expect(watched.check(nowMs + 10_000)).toEqual(healthy);
    }
    expect(watched.events).toEqual([]);
  });

  test("reports no stall while each checkpoint copies the frames before a reader", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    for (let nowMs = 0; nowMs <= 3 * stalledMs; nowMs += stalledMs / 2) {
      watched.block();
      watched.commit(1_100);
      expect(watched.check(nowMs)).toEqual(healthy);
      watched.unblock();
    }
    expect(watched.events).toEqual([]);
  });

  test("reports one stall while another connection sometimes holds the lock for checkpoints", async () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.block();
    watched.commit(1_100);
    for (const nowMs of [0, 10_000]) expect(watched.check(nowMs)).toEqual(healthy);
    for (const nowMs of [stalledMs, stalledMs + 20_000]) {
      expect(watched.check(nowMs).isStalled).toBe(true);
      await using processes = new AsyncDisposableStack();
      processes.use(await holdCheckpointLock(watched.file, folder.path));
      expect(watched.check(nowMs + 10_000).isStalled).toBe(true);
    }
    expect(watched.events).toEqual([blocked]);
  });

  test("reports no stall if the log is too short for a checkpoint", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.block();
    watched.commit(900);
    for (const nowMs of [0, stalledMs, 2 * stalledMs]) expect(watched.check(nowMs)).toEqual(healthy);
    expect(watched.events).toEqual([]);
  });

  test("reports no stall while the log is long and completely copied", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.commit(1_100);
    for (const nowMs of [0, stalledMs, 2 * stalledMs]) expect(watched.check(nowMs)).toEqual(healthy);
  });

  test('returns a checkpoint error after a minute, and replaces the reason "blocked"', () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    const { events, file } = watched;
    watched.commit(1_100);
    watched.block();
    watched.commit(1_100);
    for (const nowMs of [0, stalledMs]) expect(watched.check(nowMs).problem).toBeUndefined();
    watched.unblock();
    copyFileSync(file, `${file}.whole`);
    // SQLite copies no log into a file that lacks much more than 64 KiB.
    truncateSync(file, 4_096);
    const text = "its write-ahead log cannot be copied into the file: the file is damaged";
    for (const nowMs of [stalledMs, 2 * stalledMs - 1])
      expect(watched.check(nowMs)).toEqual({ problem: undefined, isStalled: true });
    for (let check = 0; check < 2; check++)
      expect(watched.check(2 * stalledMs)).toEqual({ problem: { text, isTemporary: false }, isStalled: true });
    expect(events).toEqual([blocked, { kind: "checkpoints-stalled", problem: text }]);
    copyFileSync(`${file}.whole`, file);
    expect(watched.check(2 * stalledMs)).toEqual(healthy);
    expect(events.at(-1)).toEqual(resumed);
    expect(findDamage(watched.reader)).toBeUndefined();
  });
});

test("reportProblem reports each problem once, and its end with the time since the first", () => {
  using now = vi.spyOn(performance, "now");
  const events: Upkeep[] = [];
  const report = reportProblem((event) => events.push(event), "checkpoints-stalled", "checkpoints-resumed");
  const problems = [undefined, "first", "first", "second", undefined, undefined];
  const results = problems.map((problem, atS) => (now.mockReturnValue(1_000 * atS), report(problem)));
  expect(results).toEqual([false, true, true, true, false, false]);
  expect(events).toEqual([
    { kind: "checkpoints-stalled", problem: "first" },
    { kind: "checkpoints-stalled", problem: "second" },
    { kind: "checkpoints-resumed", lastedMs: 3_000 },
  ]);
});
