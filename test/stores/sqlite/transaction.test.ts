import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { lockPollMs, runInTransaction, retryWhileLocked } from "../../../src/stores/sqlite/transaction.ts";
import { createTempFolder } from "@protoport/testing/process";

test.each([
  { name: "a failed transaction", end: "" },
  { name: "a failed transaction that SQLite has rolled back", end: "ROLLBACK" },
])("$name leaves no change, and releases the file", ({ end }) => {
  using folder = createTempFolder();
  using db = new DatabaseSync(folder.file("file"));
  using other = new DatabaseSync(folder.file("file"));
  db.exec("CREATE TABLE t (x)");
  const work = (): never => {
    db.exec(`INSERT INTO t VALUES (1); ${end}`);
    throw new Error("a fault");
  };
  expect(() => runInTransaction(db, work)).toThrow("a fault");
  expect(runInTransaction(other, () => other.prepare("SELECT * FROM t").all())).toEqual([]);
});

test("retryWhileLocked waits for the lock, then fails because the file is locked", () => {
  using folder = createTempFolder();
  using db = new DatabaseSync(folder.file("file"), { timeout: 0 });
  using other = new DatabaseSync(folder.file("file"));
  other.exec("BEGIN IMMEDIATE");
  const begunMs = performance.now();
  let attempts = 0;
  const begin = (): void => {
    attempts++;
    db.exec("BEGIN IMMEDIATE");
  };
  expect(() => retryWhileLocked(begin, 20)).toThrow("database is locked");
  const waitedMs = performance.now() - begunMs;
  expect(waitedMs).toBeGreaterThanOrEqual(20);
  // The connection sleeps between attempts.
  expect(attempts).toBeLessThanOrEqual(2 + (2 * waitedMs) / lockPollMs);
});

test("retryWhileLocked throws any error other than a lock immediately", () => {
  let attempts = 0;
  const fail = (): never => {
    attempts++;
    throw new Error("a fault");
  };
  expect(() => retryWhileLocked(fail, 20)).toThrow("a fault");
  expect(attempts).toBe(1);
});
