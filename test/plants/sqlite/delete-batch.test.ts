import type { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../src/plants/sqlite/database.ts";
import { type DeleteBatch, prepareDeleteBatch } from "../../../src/plants/sqlite/delete-batch.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

function batchOf(...ids: bigint[]): DeleteBatch {
  return {
    ids,
    // Long, so that a batch needs more pages than the database has.
    subjects: ids.map(() => "s".repeat(2_000)),
    requestIds: ids.map(() => "request"),
  };
}

function countOf(db: DatabaseSync, table: string): unknown {
  return db.prepare(`SELECT count(*) AS rows FROM ${table}`).get();
}

describe("committing a batch", () => {
  test("gives a plant that is named twice to the first who named it", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 3n } });
    const deleteBatch = prepareDeleteBatch(db);
    expect(deleteBatch(batchOf(2n, 2n, 9n, 3n))).toEqual({
      kind: "committed",
      outcomes: [true, false, false, true],
      kept: [],
    });
    db.close();
  });

  test("does nothing at all when the disk fills up half way, and works again when there is room", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 100n } });
    const deleteBatch = prepareDeleteBatch(db);
    const batch = batchOf(...Array.from({ length: 100 }, (_, i) => BigInt(i + 1)));
    // SQLite answers a database at its size limit as it answers a full disk: SQLITE_FULL.
    db.exec("PRAGMA max_page_count = 1");
    expect(deleteBatch(batch)).toEqual({
      kind: "nothing-done",
      problem: { text: "the disk is full", passing: true },
    });
    expect([countOf(db, "plants"), countOf(db, "deletions")]).toEqual([{ rows: 100n }, { rows: 0n }]);
    db.exec("PRAGMA max_page_count = 1000000");
    expect(deleteBatch(batch)).toEqual({ kind: "committed", outcomes: batch.ids.map(() => true), kept: [] });
    expect([countOf(db, "plants"), countOf(db, "deletions")]).toEqual([{ rows: 0n }, { rows: 100n }]);
    db.close();
  });

  test("numbers its batches on from those that are in the record", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const first = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    prepareDeleteBatch(first)(batchOf(1n, 2n));
    first.close();
    const second = openDatabase({ file });
    prepareDeleteBatch(second)(batchOf(3n));
    expect(second.prepare("SELECT plant_id, batch FROM deletions ORDER BY seq").all()).toEqual([
      { plant_id: 1n, batch: 1n },
      { plant_id: 2n, batch: 1n },
      { plant_id: 3n, batch: 2n },
    ]);
    second.close();
  });
});
