import { expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { batchSizesOf, deleteFrom, move, plantsOf } from "../../support/plants/moved-stores.ts";
import { createMissingStore, runSqlite } from "../../support/plants/sqlite-file.ts";
import { createTempFolder } from "@protoport/testing/process";

test("a move leaves the target empty when the stores' counts differ", async () => {
  using folder = createTempFolder();
  const [from, to] = [folder.file("from.db"), folder.file("to.db")];
  openDatabase({ file: from, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  createMissingStore(to);
  // SQLite does not count rows that a trigger adds as rows of the statement.
  runSqlite(to, "CREATE TRIGGER extra AFTER INSERT ON plants WHEN new.id = 1 BEGIN INSERT INTO plants VALUES (9); END");
  const moving = move({ kind: "sqlite", path: from }, { kind: "sqlite", path: to });
  await expect(moving).rejects.toThrow(/ has 4 plants, .* expected 3 plants, .*; nothing was moved; run the same/);
  expect(await plantsOf({ kind: "sqlite", path: to })).toEqual([]);
});

test("a batch after a move has its own number even if the clock was set back before the move", async () => {
  using folder = createTempFolder();
  const [from, to] = [folder.file("from.db"), folder.file("to.db")];
  openDatabase({ file: from, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  createMissingStore(to);
  await deleteFrom({ kind: "sqlite", path: from }, [1n]);
  runSqlite(from, "UPDATE deletions SET deleted_at = deleted_at + 60000");
  await deleteFrom({ kind: "sqlite", path: from }, [2n]);
  await move({ kind: "sqlite", path: from }, { kind: "sqlite", path: to });
  await deleteFrom({ kind: "sqlite", path: to }, [3n]);
  expect(await batchSizesOf({ kind: "sqlite", path: to })).toEqual([1, 1, 1]);
});
