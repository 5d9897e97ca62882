import type { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../errors.ts";
import { migrations } from "./migrations.ts";
import { runInTransaction } from "./transaction.ts";

/** All ids from `first` to `last`, both included. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

// "PLNT": tells a plant store from another program's database (sqlite.org/pragma.html#pragma_application_id).
const applicationId = 0x504c4e54n;

/**
 * Brings a file to the newest schema, in one transaction: it is done or nothing has changed. A file
 * without any schema is made a plant store, and holds `plantsWhenCreated` from its first moment.
 *
 * @throws StoreOpenError when the file is another program's, or of a schema newer than this release
 */
export function migrate(db: DatabaseSync, plantsWhenCreated?: IdRange, lockTimeoutMs?: number): void {
  if (versionOf(db) === migrations.length) return;
  runInTransaction(
    db,
    () => {
      // A second look, under the lock: two processes may open one new file at the same time.
      const version = versionOf(db);
      for (const sql of migrations.slice(version)) db.exec(sql);
      if (version === 0 && plantsWhenCreated !== undefined) fill(db, plantsWhenCreated);
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
    },
    lockTimeoutMs,
  );
}

function versionOf(db: DatabaseSync): number {
  const version = Number(pragma(db, "user_version"));
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined;
  if (!isEmpty && pragma(db, "application_id") !== applicationId) {
    throw new StoreOpenError("it is another program's SQLite database");
  }
  if (version > migrations.length) {
    throw new StoreOpenError(
      `its schema has version ${version} and this release knows ${migrations.length}: it needs a newer release`,
    );
  }
  return isEmpty ? 0 : version;
}

function pragma(db: DatabaseSync, name: string): unknown {
  return db.prepare(`PRAGMA ${name}`).get()?.[name];
}

function fill(db: DatabaseSync, { first, last }: IdRange): void {
  const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
  for (let id = first; id <= last; id++) insert.run(id);
}
