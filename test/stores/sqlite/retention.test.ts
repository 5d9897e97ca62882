import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch } from "../../../src/stores/sqlite/delete-batch.ts";
import type { OnUpkeep, Upkeep } from "../../../src/stores/contract/store-options.ts";
import { prepareRetention } from "../../../src/stores/sqlite/retention.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { readSqlite } from "../../support/plants/sqlite-file.ts";
import { closing, createTempFolder } from "@protoport/testing/process";

const hourMs = 3_600_000;

/** How soon records are checked again when none remain to drop. */
const intervalMs = 600_000;

function databaseWith(file: string, deletedAt: readonly number[]): ReturnType<typeof openDatabase> {
  const db = openDatabase({ file, migrates: true });
  const record = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (1, ?, '', '', 1)",
  );
  db.exec("BEGIN");
  for (const time of deletedAt) record.run(time);
  db.exec("COMMIT");
  return db;
}

function recorded(): { readonly reports: readonly Upkeep[]; readonly record: OnUpkeep } {
  const reports: Upkeep[] = [];
  return { reports, record: (upkeep) => void reports.push(upkeep) };
}

describe("dropping expired deletion records", () => {
  test.each([
    ["drops records and keys older than the limit", [10, 20, 30, 40], 30, [30, 40]],
    ["keeps the newest record and its key regardless of age", [10, 20], 30, [20]],
    ["drops nothing without records", [], 30, []],
    ["drops records and keys by time when a clock was ahead", [10, 90, 20, 40], 30, [90, 40]],
    ["drops records and keys by time when a clock was set back", [90, -10, 20, 91], 30, [90, 91]],
  ])("%s", (_name, deletedAt, before, remaining) => {
    using folder = createTempFolder();
    const db = databaseWith(folder.file("plants.db"), deletedAt);
    db.exec("INSERT INTO idempotency_keys SELECT 'key ' || seq, seq, deleted_at FROM deletions");
    const upkeep = recorded();
    const begunMs = performance.now();
    expect(prepareRetention(db, 100, upkeep.record)(before + 100)).toBe(intervalMs);
    const atMostMs = performance.now() - begunMs;
    expect(upkeep.reports.every((report) => "lastedMs" in report && report.lastedMs <= atMostMs + 1)).toBe(true);
    const count = deletedAt.length - remaining.length;
    expect(upkeep.reports).toEqual(
      count === 0 ? [] : [{ kind: "records-dropped", count, lastedMs: expect.any(Number) }],
    );
    for (const table of ["deletions", "idempotency_keys"]) {
      const rows = db.prepare(`SELECT deleted_at FROM ${table} ORDER BY seq`).all();
      expect(rows).toEqual(remaining.map((time) => ({ deleted_at: BigInt(time) })));
    }
    db.close();
  });

  test("checks all keys in turn, even after a restart", () => {
    using folder = createTempFolder();
    const ages = Array.from({ length: 10_000 }, (_, i) => i);
    const db = databaseWith(folder.file("plants.db"), ages);
    db.exec(`INSERT INTO idempotency_keys
             SELECT format('%05d', deleted_at * 7919 % 10000), seq, deleted_at FROM deletions`);
    const keysOf = (which: string): number =>
      Number(db.prepare(`SELECT count(*) AS keys FROM idempotency_keys WHERE ${which}`).get()?.["keys"]);
    const remaining: number[] = [];
    for (let slice = 1; slice <= 5; slice++) {
      prepareRetention(db, 0, () => {})(5_000);
      remaining.push(keysOf(`deleted_at < ${slice} * 1000`));
    }
    // Four keys are checked per dropped record, which are at first four tenths of all keys. Keys that were not checked
    // for the longest time come first.
    expect(remaining[0]).toBeGreaterThan(500);
    expect(Math.max(...remaining)).toBeLessThan(1_250);
    expect(keysOf("deleted_at >= 5000")).toBe(5_000);
    // If there is no record to drop, nothing is written.
    const written = db.prepare("SELECT total_changes() AS rows");
    const before = written.get();
    prepareRetention(db, 0, () => {})(5_000);
    expect(written.get()).toEqual(before);
    db.close();
  });

  test("frees a dropped record's key, even if the clock jumps", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 4n } });
    const clock = vi.spyOn(Date, "now");
    const deleteBatch = prepareDeleteBatch(db);
    const drop = prepareRetention(db, hourMs, () => {});
    const endAt = (nowMs: number, id: bigint, key: string): unknown => {
      clock.mockReturnValue(nowMs);
      drop(nowMs);
      return deleteBatch([[id, "", "", key]]).outcomes[0];
    };
    const firstMs = 10 * hourMs;
    expect(endAt(firstMs, 1n, "key")).toBe("deleted");
    expect(endAt(firstMs - 5 * hourMs, 2n, "early")).toBe("deleted");
    expect(endAt(firstMs - 4 * hourMs, 3n, "key")).toBe("key-reused");
    expect(endAt(firstMs + hourMs, 1n, "key")).toBe("deleted");
    expect(endAt(firstMs + hourMs, 3n, "key")).toBe("key-reused");
    expect(endAt(firstMs + hourMs, 3n, "newest")).toBe("deleted");
    expect(endAt(firstMs + hourMs + 1, 4n, "key")).toBe("deleted");
    expect(endAt(firstMs + hourMs + 1, 4n, "key")).toBe("deleted");
    expect(endAt(firstMs - 5 * hourMs, 1n, "key")).toBe("key-reused");
    clock.mockRestore();
    db.close();
  });

  test("drops slices without a pause while expired records remain", async () => {
    using folder = createTempFolder();
    const ages = Array.from({ length: 2_500 }, (_, i) => i);
    const db = databaseWith(folder.file("plants.db"), ages);
    const upkeep = recorded();
    const drop = prepareRetention(db, 0, upkeep.record);
    const begunMs = performance.now();
    expect(drop(hourMs)).toBe(0);
    // The drop is running now, even on a slow machine.
    const underWayMs = performance.now();
    await delay(20);
    expect(drop(hourMs)).toBe(0);
    const atLeastMs = performance.now() - underWayMs;
    expect(drop(hourMs)).toBe(intervalMs);
    const atMostMs = performance.now() - begunMs;
    // One report covers all slices, and there is no report if nothing was dropped.
    expect(drop(hourMs)).toBe(intervalMs);
    expect(upkeep.reports).toEqual([{ kind: "records-dropped", count: 2_499, lastedMs: expect.any(Number) }]);
    const lastedMs = upkeep.reports.flatMap((report) => ("lastedMs" in report ? report.lastedMs : []))[0];
    expect(lastedMs).toBeGreaterThanOrEqual(atLeastMs - 1);
    expect(lastedMs).toBeLessThanOrEqual(atMostMs + 1);
    expect(db.prepare("SELECT count(*) AS rows FROM deletions").get()).toEqual({ rows: 1n });
    db.close();
  });

  test("is repeated at the next interval after an error", () => {
    using folder = createTempFolder();
    const db = databaseWith(folder.file("plants.db"), [1, 2]);
    const upkeep = recorded();
    const drop = prepareRetention(db, 0, upkeep.record);
    db.close();
    expect(drop(hourMs)).toBe(intervalMs);
    const problem = expect.stringContaining("not open");
    expect(upkeep.reports).toEqual([{ kind: "retention-failed", problem, lastedMs: expect.any(Number) }]);
  });

  test("reports the records that were dropped before an error", () => {
    using folder = createTempFolder();
    const ages = Array.from({ length: 2_500 }, (_, i) => i);
    const db = databaseWith(folder.file("plants.db"), ages);
    db.exec(`CREATE TRIGGER keep BEFORE DELETE ON deletions WHEN OLD.deleted_at = 2000
             BEGIN SELECT RAISE(ABORT, 'no'); END`);
    const upkeep = recorded();
    const drop = prepareRetention(db, 0, upkeep.record);
    expect([drop(hourMs), drop(hourMs), drop(hourMs)]).toEqual([0, 0, intervalMs]);
    const lastedMs = expect.any(Number);
    expect(upkeep.reports).toEqual([
      { kind: "records-dropped", count: 2_000, lastedMs },
      { kind: "retention-failed", problem: "no", lastedMs },
    ]);
    db.close();
  });

  test("drops records after 90 days by default", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const daysAgo = (days: number): number => Date.now() - days * 24 * hourMs;
    databaseWith(file, [daysAgo(90.1), daysAgo(89.9), daysAgo(0)]).close();
    await (await openSqliteStore({ file })).close();
    expect(readSqlite(file, "SELECT seq FROM deletions")).toEqual([{ seq: 2n }, { seq: 3n }]);
  });

  test("continues without deletions until no expired records remain", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    databaseWith(file, Array<number>(2_500).fill(Date.now() - 3 * hourMs)).close();
    await using _ = closing(await openSqliteStore({ file, deletionsKeptMs: 2 * hourMs }));
    await expect.poll(() => readSqlite(file, "SELECT seq FROM deletions")).toEqual([{ seq: 2_500n }]);
  });

  test("pauses between slices while its store deletes plants", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const db = databaseWith(file, Array<number>(100_000).fill(Date.now() - 3 * hourMs));
    const remaining = (): unknown => db.prepare("SELECT count(*) AS rows FROM deletions").get()?.["rows"];
    const store = await openSqliteStore({ file, deletionsKeptMs: 2 * hourMs });
    // Without pauses, a slice would run between any two deletions until no expired records remain.
    const hasRested = async (): Promise<boolean> => {
      await store.delete(1n, deleteCall());
      const before = remaining();
      for (const id of [2n, 3n, 4n, 5n]) {
        await delay(2);
        await store.delete(id, deleteCall());
      }
      return before === remaining();
    };
    let rested = false;
    while (!rested && remaining() !== 1n) rested = await hasRested();
    expect(remaining()).not.toBe(1n);
    await store.close();
    db.close();
  });

  test.each([
    { name: "one slice", records: 2 },
    { name: "several slices", records: 2_500 },
  ])("after it has dropped $name waits for the next interval", async ({ records }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const longAgo = Date.now() - 3 * hourMs;
    const db = databaseWith(file, Array<number>(records).fill(longAgo));
    const store = await openSqliteStore({ file, deletionsKeptMs: 2 * hourMs });
    const count = (): unknown => db.prepare("SELECT count(*) AS rows FROM deletions").get();
    await expect.poll(count).toEqual({ rows: 1n });
    for (const id of [1, 2]) {
      db.exec(`INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
               VALUES (${id}, ${longAgo}, '', '', 1)`);
    }
    // The storage thread continues with the next deletion.
    for (const id of [1n, 2n, 3n, 4n]) await store.delete(id, deleteCall());
    expect(count()).toEqual({ rows: 3n });
    await store.close();
    db.close();
  });

  test("does not prevent deletions after an error", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const db = databaseWith(file, [1, 2, 3]);
    db.exec("CREATE TRIGGER keep BEFORE DELETE ON deletions BEGIN SELECT RAISE(ABORT, 'no'); END");
    db.exec("INSERT INTO plants VALUES (7)");
    db.close();
    const upkeep = recorded();
    const store = await openSqliteStore({ file, onUpkeep: upkeep.record });
    await expect(store.delete(7n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(upkeep.reports).toEqual([{ kind: "retention-failed", problem: "no", lastedMs: expect.any(Number) }]);
    expect(readSqlite(file, "SELECT count(*) AS rows FROM deletions")).toEqual([{ rows: 4n }]);
  });

  test("refuses to keep records for less than an hour", async () => {
    using folder = createTempFolder();
    const opening = openSqliteStore({ file: folder.file("plants.db"), deletionsKeptMs: hourMs - 1 });
    await expect(opening).rejects.toThrow(/must be at least 3600000/);
  });
});
