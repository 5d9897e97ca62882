import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { runInTransaction } from "../../../src/plants/sqlite/transaction.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

test("a transaction whose work fails does nothing, and leaves the file to others", () => {
  using folder = createTempFolder();
  using db = new DatabaseSync(folder.file("file"));
  using other = new DatabaseSync(folder.file("file"));
  db.exec("CREATE TABLE t (x)");
  const work = (): never => {
    db.exec("INSERT INTO t VALUES (1)");
    throw new Error("a fault");
  };
  expect(() => runInTransaction(db, work)).toThrow("a fault");
  expect(runInTransaction(other, () => other.prepare("SELECT * FROM t").all())).toEqual([]);
});
