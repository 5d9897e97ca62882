import type { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../store-open-error.ts";
import { migrations } from "./migrations.ts";
import { runInTransaction } from "./transaction.ts";

/** All ids from `first` to `last`, inclusive. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

// "PLNT": distinguishes a plant store from the database of another program
// (sqlite.org/pragma.html#pragma_application_id).
const applicationId = 0x504c4e54n;

/** Called once a change of the schema is durable, with the version before, which is 0 for a new file, and after. */
export type OnMigrated = (from: number, to: number) => void;

/**
 * Migrates a file to the newest schema in one transaction, completely or not at all. A file without a schema becomes a
 * plant store, which contains `plantsWhenCreated` from the start.
 *
 * @throws StoreOpenError when the file belongs to another program, or its schema is newer than this release
 */
export function migrate(
  db: DatabaseSync,
  plantsWhenCreated?: IdRange,
  lockTimeoutMs?: number,
  onMigrated?: OnMigrated,
): void {
  if (versionOf(db) === migrations.length) return;
  const from = runInTransaction(
    db,
    () => {
      // Checked again under the lock: two processes may open a new file at the same time.
      const version = versionOf(db);
      for (const sql of migrations.slice(version)) db.exec(sql);
      if (version === 0 && plantsWhenCreated !== undefined) fill(db, plantsWhenCreated);
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
      return version;
    },
    lockTimeoutMs,
  );
  if (from < migrations.length) onMigrated?.(from, migrations.length);
}

/**
 * Returns the version of the schema of a plant store; 0 for an empty file.
 *
 * @throws StoreOpenError when the file belongs to another program, or its schema is newer than this release
 */
export function versionOf(db: DatabaseSync): number {
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
