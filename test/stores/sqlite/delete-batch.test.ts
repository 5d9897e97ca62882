import { readFileSync, writeFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { describe, expect, test, vi } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { prepareDeleteBatch, type BatchRow, withIdentityChecks } from "../../../src/stores/sqlite/delete-batch.ts";
import { lockTimeoutMsDefault } from "../../../src/stores/sqlite/transaction.ts";
import { createTempFolder } from "@protoport/testing/process";

/** Returns deletions without a key. The subjects are so long that a batch needs more pages than the database has. */
const batchOf = (...ids: bigint[]): BatchRow[] => ids.map((id) => [id, "s".repeat(2_000), "request", null]);

const withKeys = (rows: readonly BatchRow[], ...keys: readonly (string | null)[]): BatchRow[] =>
  rows.map(([id, subject, requestId], i) => [id, subject, requestId, keys[i] ?? null]);

const countOf = (db: DatabaseSync, table: string): unknown => db.prepare(`SELECT count(*) AS rows FROM ${table}`).get();

describe("committing a batch", () => {
  test("reports a deletion only to the first of two callers", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 3n } });
    const deleteBatch = prepareDeleteBatch(db);
    expect(deleteBatch(batchOf(2n, 2n, 9n, 3n))).toEqual({ outcomes: ["deleted", "absent", "absent", "deleted"] });
    db.close();
  });

  test.each([
    { name: "bit of a key", damaged: [2, 0xa7, 0x48, 2, 0] },
    { name: "zeroed key", damaged: [2, 0x80, 0x00, 2, 0] },
  ])("reports a damaged page instead of a missing plant after a wrong $name", ({ damaged }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
    const bytes = readFileSync(file);
    // The cell of plant 5,000: its size, its key as a varint, and a record with a NULL.
    bytes.set(damaged, bytes.indexOf(Uint8Array.of(2, 0xa7, 0x08, 2, 0)));
    writeFileSync(file, bytes);
    using db = openDatabase({ file });
    const deleteBatch = prepareDeleteBatch(db);
    expect(deleteBatch(batchOf(1n, 5_000n))).toEqual({
      outcomes: ["unavailable", "unavailable"],
      problem: { text: "the file is damaged near plant 5000", isTemporary: false },
    });
    expect(deleteBatch(batchOf(1n, 30_000n))).toEqual({ outcomes: ["deleted", "absent"] });
  });

  test("rolls back when the disk is full, and works again with space", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 100n } });
    const deleteBatch = prepareDeleteBatch(db);
    const batch = batchOf(...Array.from({ length: 100 }, (_, i) => BigInt(i + 1)));
    // At a database's size limit, SQLite returns the same error as for a full disk, SQLITE_FULL.
    db.exec("PRAGMA max_page_count = 1");
    const want = { problem: { text: "the disk is full", isTemporary: true }, outcomes: batch.map(() => "unavailable") };
    expect(deleteBatch(batch)).toEqual(want);
    expect([countOf(db, "plants"), countOf(db, "deletions")]).toEqual([{ rows: 100n }, { rows: 0n }]);
    db.exec("PRAGMA max_page_count = 1000000");
    expect(deleteBatch(batch)).toEqual({ outcomes: batch.map(() => "deleted") });
    expect([countOf(db, "plants"), countOf(db, "deletions")]).toEqual([{ rows: 0n }, { rows: 100n }]);
    db.close();
  });

  test("deletes only one plant for an idempotency key", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 8n } });
    const deleteBatch = prepareDeleteBatch(db);
    deleteBatch(withKeys(batchOf(1n), "used"));
    // Plant 1 is restored, and plant 2 is protected.
    db.exec(`
      INSERT INTO plants VALUES (1);
      CREATE TRIGGER keep BEFORE DELETE ON plants WHEN old.id IN (1, 2) BEGIN SELECT RAISE(ABORT, 'no'); END`);
    const keys = ["used", "kept", "used", null, "new", "new", "new"];
    const outcomes = ["deleted", "protected", "key-reused", "deleted", "deleted", "deleted", "key-reused"];
    const want = { outcomes, causes: outcomes.map((outcome) => (outcome === "protected" ? "no" : undefined)) };
    expect(deleteBatch(withKeys(batchOf(1n, 2n, 3n, 4n, 5n, 5n, 6n), ...keys))).toEqual(want);
    expect(idsIn(db, "SELECT id FROM plants ORDER BY id")).toEqual([1n, 2n, 3n, 6n, 7n, 8n]);
    const keysKept =
      "SELECT k.idempotency_key AS id FROM deletions LEFT JOIN idempotency_keys AS k USING (seq) ORDER BY seq";
    expect(idsIn(db, keysKept)).toEqual(["used", null, "new"]);
    db.close();
  });

  test.each([
    { name: "a dropped record", sql: "INSERT INTO idempotency_keys VALUES ('used', 7, 5)" },
    {
      name: "a dropped record whose number was reused",
      sql: `INSERT INTO deletions VALUES (7, 1, 6, '', '', 1); INSERT INTO idempotency_keys VALUES ('used', 7, 5)`,
    },
  ])("for $name accepts the idempotency key again", ({ sql }) => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } });
    db.exec(sql);
    const deleteBatch = prepareDeleteBatch(db);
    const keys = ["used"];
    expect(deleteBatch(withKeys(batchOf(1n), ...keys))).toEqual({ outcomes: ["deleted"] });
    expect(deleteBatch(withKeys(batchOf(1n), ...keys)).outcomes).toEqual(["deleted"]);
    expect(deleteBatch(withKeys(batchOf(2n), ...keys)).outcomes).toEqual(["key-reused"]);
    expect(idsIn(db, "SELECT id FROM plants")).toEqual([2n]);
    db.close();
  });

  test("finds an idempotency key even after a trigger changed its record", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } });
    db.exec(`CREATE TRIGGER seconds AFTER INSERT ON deletions
             BEGIN UPDATE deletions SET deleted_at = 1000 * (deleted_at / 1000) - 1 WHERE seq = new.seq; END`);
    const deleteBatch = prepareDeleteBatch(db);
    expect(deleteBatch(withKeys(batchOf(1n), "k")).outcomes).toEqual(["deleted"]);
    expect(deleteBatch(withKeys(batchOf(2n), "k")).outcomes).toEqual(["key-reused"]);
    db.close();
  });

  test("keeps a plant if a trigger silently skips its idempotency key", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 3n } });
    db.exec(`CREATE TRIGGER keep BEFORE INSERT ON idempotency_keys WHEN new.idempotency_key = 'no'
             BEGIN SELECT RAISE(IGNORE); END`);
    const cause = "a trigger drops the deletion record or its idempotency key";
    const want = { outcomes: ["deleted", "protected", "deleted"], causes: [undefined, cause, undefined] };
    expect(prepareDeleteBatch(db)(withKeys(batchOf(1n, 2n, 3n), "yes", "no", null))).toEqual(want);
    expect(idsIn(db, "SELECT id FROM plants")).toEqual([2n]);
    expect(idsIn(db, "SELECT plant_id AS id FROM deletions ORDER BY seq")).toEqual([1n, 3n]);
    db.close();
  });

  test("continues the batch numbers in existing records", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const first = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 4n } });
    const deleteBatch = prepareDeleteBatch(first);
    deleteBatch(batchOf(1n, 2n));
    deleteBatch(batchOf(3n));
    first.close();
    const second = openDatabase({ file });
    prepareDeleteBatch(second)(batchOf(4n));
    expect(second.prepare("SELECT plant_id, batch FROM deletions ORDER BY seq").all()).toEqual([
      { plant_id: 1n, batch: 1n },
      { plant_id: 2n, batch: 1n },
      { plant_id: 3n, batch: 2n },
      { plant_id: 4n, batch: 3n },
    ]);
    second.close();
  });

  test("continues the newest record's batch number, even after a higher number", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 1n } });
    db.exec("INSERT INTO deletions VALUES (1, 7, 0, '', '', 4611686018427387903), (2, 8, 0, '', '', 5)");
    prepareDeleteBatch(db)(batchOf(1n));
    expect(db.prepare("SELECT batch FROM deletions WHERE plant_id = 1").get()).toEqual({ batch: 6n });
  });

  test("waits at most the lock timeout for another process", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using db = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 1n } });
    using other = openDatabase({ file });
    other.exec("BEGIN IMMEDIATE");
    const begunMs = performance.now();
    const problem = { text: "another process holds the lock on the file", isTemporary: true };
    expect(prepareDeleteBatch(db, 10)(batchOf(1n))).toEqual({ problem, outcomes: ["unavailable"] });
    expect(performance.now() - begunMs).toBeLessThan(lockTimeoutMsDefault);
  });

  test("gives commits of two servers on one file different batch numbers", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using first = openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } });
    using second = openDatabase({ file });
    const [deleteInFirst, deleteInSecond] = [prepareDeleteBatch(first), prepareDeleteBatch(second)];
    deleteInFirst(batchOf(1n));
    deleteInSecond(batchOf(2n));
    deleteInFirst(batchOf(3n));
    expect(first.prepare("SELECT plant_id, batch FROM deletions ORDER BY seq").all()).toEqual([
      { plant_id: 1n, batch: 1n },
      { plant_id: 2n, batch: 2n },
      { plant_id: 3n, batch: 3n },
    ]);
  });
});

// Protects plants 3 and 6 in a file with plants 1 to 8.
// oxfmt-ignore
const protections: readonly { name: string; sql: string }[] = [
  ...["BEFORE", "AFTER"].flatMap((time) =>
    ["ABORT", "FAIL", "ROLLBACK"].map((kind) => ({
      name: `a trigger that raises ${kind} ${time.toLowerCase()} the deletion`,
      sql: `CREATE TRIGGER keep ${time} DELETE ON plants WHEN old.id IN (3, 6) BEGIN SELECT RAISE(${kind}, 'no'); END`,
    })),
  ),
  ...["ABORT", "FAIL", "ROLLBACK"].map((kind) => ({
    name: `a trigger that raises ${kind} after the record`,
    sql: `CREATE TRIGGER keep AFTER INSERT ON deletions WHEN new.plant_id IN (3, 6)
            BEGIN SELECT RAISE(${kind}, 'no'); END`,
  })),
  { name: "a trigger that raises IGNORE before the deletion",
    sql: "CREATE TRIGGER keep BEFORE DELETE ON plants WHEN old.id IN (3, 6) BEGIN SELECT RAISE(IGNORE); END" },
  {
    name: "two triggers, one of which raises IGNORE,",
    sql: `CREATE TRIGGER keep BEFORE DELETE ON plants WHEN old.id = 3 BEGIN SELECT RAISE(IGNORE); END;
          CREATE TRIGGER too AFTER DELETE ON plants WHEN old.id = 6 BEGIN SELECT RAISE(ABORT, 'no'); END`,
  },
  {
    name: "a trigger that raises IGNORE before the record",
    sql: `CREATE TRIGGER keep BEFORE INSERT ON deletions WHEN new.plant_id IN (3, 6)
            BEGIN SELECT RAISE(IGNORE); END`,
  },
  { name: "a foreign key",
    sql: "CREATE TABLE beds (plant INTEGER REFERENCES plants (id)); INSERT INTO beds VALUES (3), (6)" },
  {
    name: "a deferred foreign key",
    sql: `CREATE TABLE beds (plant INTEGER REFERENCES plants (id) DEFERRABLE INITIALLY DEFERRED);
          INSERT INTO beds VALUES (3), (6)`,
  },
];

const eight = [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n];

describe("a batch with protected plants", () => {
  test.each(protections)("with $name deletes and records only the unprotected plants", ({ sql }) => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 8n } });
    db.exec(sql);
    const deleteBatch = prepareDeleteBatch(db);
    const resultOf = (...ids: readonly bigint[]) => {
      const { causes: _, ...result } = deleteBatch(batchOf(...ids));
      return result;
    };
    // The second call for a plant does not delete it, even when its batch is split.
    expect(resultOf(...eight, 1n, 99n)).toEqual({
      // oxfmt-ignore
      outcomes: [
        "deleted", "deleted", "protected", "deleted", "deleted", "protected", "deleted", "deleted", "absent", "absent",
      ],
    });
    expect(db.isTransaction).toBe(false);
    expect(idsIn(db, "SELECT id FROM plants ORDER BY id")).toEqual([3n, 6n]);
    expect(idsIn(db, "SELECT plant_id AS id FROM deletions ORDER BY seq")).toEqual([1n, 2n, 4n, 5n, 7n, 8n]);
    // The deletions of protected plants fail in a batch of one and in a batch of two.
    expect(resultOf(3n)).toEqual({ outcomes: ["protected"] });
    expect(resultOf(6n, 3n)).toEqual({ outcomes: ["protected", "protected"] });
    expect(idsIn(db, "SELECT id FROM plants ORDER BY id")).toEqual([3n, 6n]);
    expect(countOf(db, "deletions")).toEqual({ rows: 6n });
    db.close();
  });

  test("keeps committed parts when the disk becomes full in a later part", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 100n } });
    db.exec("CREATE TRIGGER keep BEFORE DELETE ON plants WHEN old.id = 3 BEGIN SELECT RAISE(ABORT, 'no'); END");
    const pages = db.prepare("PRAGMA page_count").get()?.["page_count"];
    // Space for a few records, not for all.
    db.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`);
    const ids = Array.from({ length: 100 }, (_, i) => BigInt(i + 1));
    expect(prepareDeleteBatch(db)(batchOf(...ids))).toEqual({
      problem: { text: "the disk is full", isTemporary: true },
      causes: ids.map((id) => (id === 3n ? "no" : undefined)),
      outcomes: ["deleted", "deleted", "protected", ...ids.slice(3).map(() => "unavailable")],
    });
    expect(idsIn(db, "SELECT id FROM plants ORDER BY id")).toEqual(ids.filter((id) => id > 2n));
    expect(idsIn(db, "SELECT plant_id AS id FROM deletions ORDER BY seq")).toEqual([1n, 2n]);
    db.close();
  });

  test("attempts each plant only a few times when all are protected", () => {
    using folder = createTempFolder();
    const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 1_000n } });
    let requested = 0;
    db.function("count_and_keep", () => {
      requested++;
      return 1;
    });
    db.exec(`CREATE TRIGGER keep BEFORE DELETE ON plants WHEN count_and_keep() BEGIN SELECT RAISE(ABORT, 'no'); END`);
    const ids = Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1));
    expect(prepareDeleteBatch(db)(batchOf(...ids))).toEqual({
      outcomes: ids.map(() => "protected"),
      causes: ids.map(() => "no"),
    });
    expect(requested).toBeLessThanOrEqual(3 * ids.length);
    expect([countOf(db, "plants"), countOf(db, "deletions")]).toEqual([{ rows: 1_000n }, { rows: 0n }]);
    db.close();
  });
});

describe("a trigger that fails", () => {
  test.each([
    { sql: "SELECT json_extract('{', '$')", cause: "malformed JSON" },
    { sql: "SELECT zeroblob(2000000000)", cause: "string or blob too big" },
    { sql: "INSERT INTO beds VALUES ('x')", cause: "datatype mismatch" },
  ])("with $cause fails only its plant", ({ sql, cause }) => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 8n } });
    db.exec(`
      CREATE TABLE beds (id INTEGER PRIMARY KEY);
      CREATE TRIGGER fail BEFORE DELETE ON plants WHEN old.id IN (3, 6) BEGIN ${sql}; END`);
    const outcomes = eight.map((id) => (id === 3n || id === 6n ? "unavailable" : "deleted"));
    const causes = outcomes.map((outcome) => (outcome === "deleted" ? undefined : cause));
    expect(prepareDeleteBatch(db)(batchOf(...eight))).toEqual({ outcomes, causes });
    expect(idsIn(db, "SELECT id FROM plants")).toEqual([3n, 6n]);
  });

  test("without its table fails all deletions, and only a restart helps", () => {
    using folder = createTempFolder();
    using db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } });
    const deleteBatch = prepareDeleteBatch(db);
    db.exec("CREATE TRIGGER fail BEFORE DELETE ON plants WHEN old.id = 2 BEGIN DELETE FROM beds; END");
    const problem = { text: "no such table: main.beds", isTemporary: false };
    expect(deleteBatch(batchOf(1n, 2n))).toEqual({ problem, outcomes: ["unavailable", "unavailable"] });
  });
});

test("a commit that fails with SQLITE_ERROR is not repeated", () => {
  using folder = createTempFolder();
  using db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 2n } });
  const prepare = db.prepare.bind(db);
  const commitAndFail = (): never => {
    db.exec("COMMIT");
    throw Object.assign(new Error("failed"), { errcode: 1 });
  };
  vi.spyOn(db, "prepare").mockImplementation((sql) =>
    sql === "COMMIT" ? Object.assign(prepare(sql), { run: commitAndFail }) : prepare(sql),
  );
  const problem = { text: "failed", isTemporary: false };
  expect(prepareDeleteBatch(db)(batchOf(1n, 2n))).toEqual({ problem, outcomes: ["unknown", "unknown"] });
});

test("a batch whose commit fails for one plant is split in half", () => {
  using folder = createTempFolder();
  const db = openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 256n } });
  let requested = 0;
  db.function("count", () => ++requested);
  db.exec(`
    CREATE TABLE beds (plant INTEGER REFERENCES plants (id) DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO beds VALUES (1);
    CREATE TRIGGER count BEFORE DELETE ON plants BEGIN SELECT count(); END`);
  const ids = Array.from({ length: 256 }, (_, i) => BigInt(i + 1));
  expect(prepareDeleteBatch(db)(batchOf(...ids)).outcomes).toEqual(
    ids.map((id) => (id === 1n ? "protected" : "deleted")),
  );
  // The batch, its halves, the halves of one half, and so on need at most three attempts per plant.
  expect(requested).toBeLessThanOrEqual(3 * ids.length);
  db.close();
});

test("the outcomes of a batch are unknown if the file is gone after its commit", () => {
  const problem = { text: "the file was moved", isTemporary: false };
  const found = [undefined, problem, problem];
  const check = withIdentityChecks({ findProblem: () => found.shift() }, () => ({ outcomes: ["deleted", "absent"] }));
  expect(check(batchOf(1n, 2n))).toEqual({ outcomes: ["unknown", "unknown"], problem });
  expect(check(batchOf(1n))).toEqual({ outcomes: ["unavailable"], problem });
});

const rowsOf = (db: DatabaseSync, sql: string) => db.prepare(sql).all();
const idsIn = (db: DatabaseSync, sql: string): unknown[] => rowsOf(db, sql).map(({ id }) => id);
