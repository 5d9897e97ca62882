import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../src/plants/sqlite/database.ts";
import { prepareDropOldDeletions } from "../../../src/plants/sqlite/retention.ts";
import { openSqliteStore } from "../../../src/plants/sqlite/store.ts";
import { readSqlite } from "../../support/sqlite-file.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

const hourMs = 3_600_000;

function databaseWith(file: string, deletedAt: readonly number[]): ReturnType<typeof openDatabase> {
  const db = openDatabase({ file });
  const record = db.prepare(
    "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (1, ?, '', '', 1)",
  );
  db.exec("BEGIN");
  for (const time of deletedAt) record.run(time);
  db.exec("COMMIT");
  return db;
}

describe("dropping old deletion records", () => {
  test.each([
    { name: "drops what is older than the moment", deletedAt: [10, 20, 30, 40], before: 30, left: [30, 40] },
    { name: "keeps the newest record however old it is", deletedAt: [10, 20], before: 30, left: [20] },
    { name: "has nothing to drop in an empty record", deletedAt: [], before: 30, left: [] },
  ])("$name", ({ deletedAt, before, left }) => {
    using folder = createTempFolder();
    const db = databaseWith(folder.file("plants.db"), deletedAt);
    expect(prepareDropOldDeletions(db)(new Date(before))).toBe(false);
    const rows = db.prepare("SELECT deleted_at FROM deletions ORDER BY seq").all();
    expect(rows).toEqual(left.map((time) => ({ deleted_at: BigInt(time) })));
    db.close();
  });

  test("takes a short slice at a time, and says when there is more", () => {
    using folder = createTempFolder();
    const db = databaseWith(
      folder.file("plants.db"),
      Array.from({ length: 2_500 }, (_, i) => i),
    );
    const drop = prepareDropOldDeletions(db);
    expect([drop(new Date(hourMs)), drop(new Date(hourMs)), drop(new Date(hourMs))]).toEqual([true, true, false]);
    expect(db.prepare("SELECT count(*) AS rows FROM deletions").get()).toEqual({ rows: 1n });
    db.close();
  });

  test("is done by the store beside its deletions", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const now = Date.now();
    databaseWith(file, [now - 3 * hourMs, now - 3 * hourMs, now - hourMs]).close();
    const store = await openSqliteStore({ file, deletionsKeptMs: 2 * hourMs });
    await store.close();
    expect(readSqlite(file, "SELECT seq FROM deletions")).toEqual([{ seq: 3n }]);
  });

  test("is never done within the hour", async () => {
    using folder = createTempFolder();
    const opening = openSqliteStore({ file: folder.file("plants.db"), deletionsKeptMs: hourMs - 1 });
    await expect(opening).rejects.toThrow(/for an hour at least/);
  });
});
