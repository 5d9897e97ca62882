import type { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../store-open-error.ts";
import { migrations, newestVersion, tablesSql } from "./migrations.ts";
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

/** Options of {@link migrate}. */
export interface MigrateOptions {
  /** Plants to insert if this call creates the store. */
  readonly plantsWhenCreated?: IdRange | undefined;
  /** The longest wait for another process's lock, in milliseconds. */
  readonly lockTimeoutMs?: number | undefined;
  readonly onMigrated?: OnMigrated | undefined;
  /** The steps from version 1. */
  readonly steps?: readonly string[];
}

/**
 * Migrates a file to the newest schema in one transaction, completely or not at all. A file without a schema becomes a
 * plant store.
 *
 * @throws StoreOpenError when the file belongs to another program, or its schema is newer than this release
 */
export function migrate(
  db: DatabaseSync,
  { plantsWhenCreated, lockTimeoutMs, onMigrated, steps = migrations }: MigrateOptions = {},
): void {
  const to = newestVersion(steps);
  if (versionOf(db, to) === to) return;
  const from = runInTransaction(
    db,
    () => {
      // Checked again under the lock: two processes may open a new file at the same time.
      const version = versionOf(db, to);
      if (version === 0) createTables(db, plantsWhenCreated);
      for (const sql of steps.slice(Math.max(version - 1, 0))) db.exec(sql);
      db.exec(`PRAGMA user_version = ${to}`);
      return version;
    },
    lockTimeoutMs,
  );
  if (from < to) onMigrated?.(from, to);
}

function createTables(db: DatabaseSync, plants: IdRange | undefined): void {
  db.exec(`${tablesSql} PRAGMA application_id = ${applicationId}`);
  if (plants !== undefined) fill(db, plants);
}

/**
 * Returns the version of the schema of a plant store; 0 for an empty file.
 *
 * @throws StoreOpenError when the file belongs to another program, or its schema is newer than this release
 */
export function versionOf(db: DatabaseSync, newest: number = newestVersion()): number {
  const version = Number(pragma(db, "user_version"));
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined;
  if (!isEmpty && pragma(db, "application_id") !== applicationId) {
    throw new StoreOpenError("it is another program's SQLite database");
  }
  if (version > newest && !isEmpty) {
    throw new StoreOpenError(
      `its schema has version ${version} and this release knows ${newest}: it needs a newer release`,
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
