import { copyFileSync, truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { CheckpointWatch, stalledMs } from "../../../src/stores/sqlite/checkpoint-watch.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { FileIdentity } from "../../../src/stores/sqlite/file-identity.ts";
import { findDamage } from "../../../src/stores/sqlite/problem.ts";
import type { Upkeep } from "../../../src/stores/contract/store-options.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

const blocked = {
  kind: "checkpoints-stalled",
  problem: "another connection, such as a long export, reads older content, or holds the lock for checkpoints",
};
const resumed = { kind: "checkpoints-resumed", lastedMs: expect.any(Number) };

/** Opens a new file whose checkpoints are watched, and another connection to the file. */
function watch(folder: TempFolder) {
  const file = folder.file("plants.db");
  const db = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 9n } });
  db.exec("CREATE TABLE pages (bytes BLOB)");
  const identity = new FileIdentity(file, db);
  const reader = new DatabaseSync(file);
  const events: Upkeep[] = [];
  const checkpoints = new CheckpointWatch(
    db,
    () => identity.readIndex(),
    (event) => events.push(event),
  );
  return {
    file,
    checkpoints,
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
      identity.close();
    },
  };
}

describe("the checkpoint watch", () => {
  test("reports blocked checkpoints once, and resumed checkpoints once", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    const { checkpoints, events } = watched;
    for (let nowMs = 0; nowMs < 2; nowMs++) {
      watched.block();
      watched.commit(1_100);
      const check = (sinceMs: number): boolean => {
        expect(checkpoints.findProblem(nowMs * 1_000_000 + sinceMs)).toBeUndefined();
        return checkpoints.isStalled;
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
      expect(watched.checkpoints.findProblem(nowMs)).toBeUndefined();
      watched.unblock();
      watched.reader.exec("PRAGMA wal_checkpoint(PASSIVE)");
    }
    expect(watched.events).toEqual([]);
  });

  test("reports no stall while each checkpoint copies the frames before a reader", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    for (let nowMs = 0; nowMs <= 3 * stalledMs; nowMs += stalledMs / 2) {
      watched.block();
      watched.commit(1_100);
      expect(watched.checkpoints.findProblem(nowMs)).toBeUndefined();
      watched.unblock();
    }
    expect(watched.events).toEqual([]);
  });

  test("reports no stall if the log is too short for a checkpoint", () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    watched.commit(900);
    for (const nowMs of [0, stalledMs, 2 * stalledMs]) expect(watched.checkpoints.findProblem(nowMs)).toBeUndefined();
    expect(watched.events).toEqual([]);
  });

  test('returns a checkpoint error, which replaces the reason "blocked"', () => {
    using folder = createTempFolder();
    using watched = watch(folder);
    const { checkpoints, events, file } = watched;
    watched.commit(1_100);
    watched.block();
    watched.commit(1_100);
    for (const nowMs of [0, stalledMs]) expect(checkpoints.findProblem(nowMs)).toBeUndefined();
    watched.unblock();
    copyFileSync(file, `${file}.whole`);
    // SQLite copies no log into a file that lacks much more than 64 KiB.
    truncateSync(file, 4_096);
    const text = "its write-ahead log cannot be copied into the file: the file is damaged";
    for (let check = 0; check < 2; check++) {
      expect(checkpoints.findProblem(stalledMs)).toEqual({ text, isTemporary: false });
    }
    expect(events).toEqual([blocked, { kind: "checkpoints-stalled", problem: text }]);
    copyFileSync(`${file}.whole`, file);
    expect(checkpoints.findProblem(stalledMs)).toBeUndefined();
    expect(events.at(-1)).toEqual(resumed);
    expect(findDamage(watched.reader)).toBeUndefined();
  });
});
