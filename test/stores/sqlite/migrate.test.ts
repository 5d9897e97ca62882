import { constants, DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { assertUsable, migrate, type SqliteMigration, tablesSql } from "../../../src/stores/sqlite/migrate.ts";
import { schemaAfter } from "../../../src/stores/contract/schema-version.ts";
import { createTempFolder } from "@protoport/testing/process";

const applicationId = 0x504c4e54;
const steps: readonly SqliteMigration[] = [
  { sql: "ALTER TABLE deletions ADD COLUMN note TEXT" },
  { sql: "CREATE TABLE receipts (seq INTEGER PRIMARY KEY) STRICT" },
];
const { version: latest } = schemaAfter(steps);

/** Creates a database with a version up to the last step's. */
function databaseOfVersion(version: number, file = ":memory:"): DatabaseSync {
  const db = new DatabaseSync(file, { readBigInts: true });
  for (const { sql } of [{ sql: tablesSql }, ...steps].slice(0, version)) db.exec(sql);
  db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version};
           UPDATE plantstore_schema SET oldest_server = ${Math.max(1, version - 1)}`);
  return db;
}

const schemaOf = (db: DatabaseSync) => db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();

describe("migrating a file", () => {
  test.each([1, 2, 3])("runs the remaining steps from version %d and keeps the plants", (version) => {
    const db = databaseOfVersion(version);
    db.exec("INSERT INTO plants (id) VALUES (7)");
    migrate(db, { plantsWhenCreated: { first: 1n, last: 3n }, steps });
    expect(schemaOf(db)).toEqual(schemaOf(databaseOfVersion(latest)));
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: BigInt(latest) });
    expect(db.prepare("SELECT id FROM plants").all()).toEqual([{ id: 7n }]);
  });

  test("runs all steps for a new file", () => {
    using db = new DatabaseSync(":memory:", { readBigInts: true });
    migrate(db, { plantsWhenCreated: { first: 1n, last: 3n }, steps });
    expect(schemaOf(db)).toEqual(schemaOf(databaseOfVersion(latest)));
    expect(db.prepare("PRAGMA application_id").get()).toEqual({ application_id: BigInt(applicationId) });
    expect(db.prepare("SELECT id FROM plants").all()).toEqual([{ id: 1n }, { id: 2n }, { id: 3n }]);
  });

  test.each([
    { name: "a compatible step", last: {}, oldest: 2n },
    { name: "a breaking step", last: { breaking: true as const }, oldest: 3n },
  ])("after $name records the oldest release that can use the schema", ({ last, oldest }) => {
    const db = databaseOfVersion(1);
    migrate(db, { steps: steps.map((step, i) => (i === 1 ? { ...step, ...last } : step)) });
    expect(db.prepare("SELECT oldest_server FROM plantstore_schema").all()).toEqual([{ oldest_server: oldest }]);
  });

  test("does not change a newer schema that the release can use", () => {
    const db = databaseOfVersion(3);
    const before = schemaOf(db);
    migrate(db, { steps: steps.slice(0, 1), onMigrated: () => expect.unreachable() });
    expect(schemaOf(db)).toEqual(before);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 3n });
    expect(() => migrate(db, { steps: [] })).toThrow(/^its schema has version 3, .*: use a newer release$/);
  });

  test("rolls back when a step fails", () => {
    const db = databaseOfVersion(1);
    // Makes the second step fail.
    db.exec("CREATE TABLE receipts (x)");
    const before = schemaOf(db);
    expect(() => migrate(db, { steps })).toThrow(/already exists/);
    expect(schemaOf(db)).toEqual(before);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1n });
  });

  test.each([
    { name: "the same release", early: steps, late: steps, reports: ["early 1 3"] },
    { name: "a newer release", early: steps, late: steps.slice(0, 1), reports: ["early 1 3"] },
    { name: "an older release", early: steps.slice(0, 1), late: steps, reports: ["early 1 2", "late 2 3"] },
  ])("skips the steps that $name ran concurrently", ({ early, late, reports }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using lateDb = databaseOfVersion(1, file);
    using earlyDb = new DatabaseSync(file, { readBigInts: true });
    const reported: string[] = [];
    let began = false;
    // SQLite calls this when it waits for the lock, after the version was read.
    lateDb.setAuthorizer((action) => {
      if (action === constants.SQLITE_TRANSACTION && !began) {
        began = true;
        migrate(earlyDb, { onMigrated: (from, to) => reported.push(`early ${from} ${to}`), steps: early });
      }
      return constants.SQLITE_OK;
    });
    migrate(lateDb, { onMigrated: (from, to) => reported.push(`late ${from} ${to}`), steps: late });
    expect(reported).toEqual(reports);
    expect(schemaOf(lateDb)).toEqual(schemaOf(databaseOfVersion(latest)));
    const version = "SELECT user_version, oldest_server FROM pragma_user_version, plantstore_schema";
    expect(lateDb.prepare(version).get()).toEqual({ user_version: 3n, oldest_server: 2n });
  });
});

test.each(["migrating", "using"])("%s a file from before release 0.1.0 fails with advice", (what) => {
  const db = databaseOfVersion(1);
  db.exec("DROP TABLE plantstore_schema; PRAGMA user_version = 7");
  const use = (): void => (what === "using" ? assertUsable(db) : migrate(db));
  expect(use).toThrow(/^it was created by a plantstore before release 0\.1\.0, which no release can migrate: run /);
});
