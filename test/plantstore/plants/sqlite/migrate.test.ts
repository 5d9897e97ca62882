import { constants, DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { migrate } from "../../../../src/plantstore/plants/sqlite/migrate.ts";
import { migrations } from "../../../../src/plantstore/plants/sqlite/migrations.ts";
import { createTempFolder } from "../../../support/process/temp-folder.ts";

const applicationId = 0x504c4e54;

/** A database that an older release has made. */
function databaseOfVersion(version: number, file = ":memory:"): DatabaseSync {
  const db = new DatabaseSync(file, { readBigInts: true });
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

  test("is done, and told of, by the first of two that begin", () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    using late = databaseOfVersion(1, file);
    using early = new DatabaseSync(file, { readBigInts: true });
    const reports: string[] = [];
    let began = false;
    late.setAuthorizer((action) => {
      if (action === constants.SQLITE_TRANSACTION && !began) {
        began = true;
        migrate(early, undefined, undefined, (from, to) => reports.push(`early ${from} ${to}`));
      }
      return constants.SQLITE_OK;
    });
    migrate(late, undefined, undefined, (from, to) => reports.push(`late ${from} ${to}`));
    expect(reports).toEqual([`early 1 ${migrations.length}`]);
  });
});
