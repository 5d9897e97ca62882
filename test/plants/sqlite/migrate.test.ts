import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { migrate } from "../../../src/plants/sqlite/migrate.ts";
import { migrations } from "../../../src/plants/sqlite/migrations.ts";

const applicationId = 0x504c4e54;

/** A database that an older release has made. */
function databaseOfVersion(version: number): DatabaseSync {
  const db = new DatabaseSync(":memory:", { readBigInts: true });
  for (const sql of migrations.slice(0, version)) db.exec(sql);
  db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
  return db;
}

function schemaOf(db: DatabaseSync): unknown[] {
  return db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
}

describe("migrating a file", () => {
  test.each(migrations.map((_, i) => i + 1))(
    "brings version %d to the newest schema and keeps its plants",
    (version) => {
      const db = databaseOfVersion(version);
      db.exec("INSERT INTO plants (id) VALUES (7)");
      migrate(db, { first: 1n, last: 3n });
      expect(schemaOf(db)).toEqual(schemaOf(databaseOfVersion(migrations.length)));
      expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: BigInt(migrations.length) });
      expect(db.prepare("SELECT id FROM plants").all()).toEqual([{ id: 7n }]);
    },
  );

  test("changes nothing when it fails half way", () => {
    const db = databaseOfVersion(1);
    // In the way of the second step.
    db.exec("CREATE TABLE deletions (x)");
    const before = schemaOf(db);
    expect(() => migrate(db)).toThrow(/already exists/);
    expect(schemaOf(db)).toEqual(before);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1n });
  });
});
