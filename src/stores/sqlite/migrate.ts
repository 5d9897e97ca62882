import type { DatabaseSync } from "node:sqlite";
import { asideProblemOf } from "../contract/movable-store.ts";
import {
  assertUsableSchema,
  noSchema,
  preReleaseStore,
  schemaAfter,
  type SchemaStep,
  type SchemaVersion,
} from "../contract/schema-version.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { StoreOpenError } from "../contract/store-options.ts";
import { runInTransaction } from "./transaction.ts";

/** One step to a newer schema. During the step, the previous release's servers wait for the lock. */
export interface SqliteMigration extends SchemaStep {
  /** The statements. All steps run in one transaction. Must take less than a second, even for a large store. */
  readonly sql: string;
}

/**
 * Creates schema version 1.
 *
 * - `plants` is a rowid table. The id is the key of the b-tree, and every int64 is a valid rowid.
 * - In `deletions`, plant_id is not unique, because a restored plant can be deleted again. deleted_at is in
 *   milliseconds since 1970-01-01 UTC. batch is a number that counts commits.
 * - Idempotency keys are in a separate table, and are dropped later, a page at a time. Keys are random, so an index on
 *   the records would cost a page write per dropped record. `swept_keys` contains the last checked key.
 * - `plantstore_schema` contains the oldest release that can use the schema, and the marks of moves. `user_version`
 *   is the schema version.
 */
export const tablesSql = `
  CREATE TABLE plants (id INTEGER PRIMARY KEY) STRICT;
  CREATE TABLE deletions (
    seq INTEGER PRIMARY KEY,
    plant_id INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    request_id TEXT NOT NULL,
    batch INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deletions_by_time ON deletions (deleted_at);
  CREATE TABLE idempotency_keys (
    idempotency_key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE swept_keys (up_to TEXT NOT NULL) STRICT;
  INSERT INTO swept_keys VALUES ('');
  CREATE TABLE plantstore_schema (
    oldest_server INTEGER NOT NULL,
    moved_to TEXT,
    moved_from TEXT,
    undone TEXT NOT NULL DEFAULT ''
  ) STRICT;
  INSERT INTO plantstore_schema (oldest_server) VALUES (1);`;

/** The steps from schema version 1. Step `i` leads to version `i + 2`. Add steps at the end, never edit old ones. */
export const migrations: readonly SqliteMigration[] = [];

// "PLNT" in ASCII. Identifies a plant store's database (sqlite.org/pragma.html#pragma_application_id).
const applicationId = 0x504c4e54n;

/** All ids from `first` to `last`, inclusive. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** Called once a migration is durable, with the versions before and after. A new file had version 0. */
export type OnMigrated = (from: number, to: number) => void;

/** Options for {@link migrate}. `steps` are the migration steps from version 1. */
interface MigrateOptions {
  readonly plantsWhenCreated?: IdRange | undefined;
  readonly lockTimeoutMs?: number | undefined;
  readonly onMigrated?: OnMigrated | undefined;
  readonly steps?: readonly SqliteMigration[];
}

/**
 * Migrates a file to the newest schema in one transaction. An empty file becomes a plant store. Keeps a newer schema.
 *
 * @throws StoreOpenError if the file belongs to another program, or this release cannot use the file's schema
 */
export function migrate(
  db: DatabaseSync,
  { plantsWhenCreated, lockTimeoutMs, onMigrated, steps = migrations }: MigrateOptions = {},
): void {
  const { version: to, oldestServer } = schemaAfter(steps);
  const run = (): number => {
    // Checks the version under the lock, because two processes may open a new file at the same time.
    const { version } = versionOf(db);
    if (version >= to) return version;
    if (version === 0) createTables(db, plantsWhenCreated);
    for (const { sql } of steps.slice(Math.max(version - 1, 0))) db.exec(sql);
    db.exec(`PRAGMA user_version = ${to}; UPDATE plantstore_schema SET oldest_server = ${oldestServer}`);
    return version;
  };
  // Needs no lock if there is nothing to do.
  const from = versionOf(db).version < to ? runInTransaction(db, run, lockTimeoutMs) : to;
  if (from < to) onMigrated?.(from, to);
  assertUsable(db, to);
}

function createTables(db: DatabaseSync, plants: IdRange | undefined): void {
  db.exec(`${tablesSql} PRAGMA application_id = ${applicationId}`);
  if (plants === undefined) return;
  const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
  for (let id = plants.first; id <= plants.last; id++) insert.run(id);
}

/** @throws StoreOpenError when a release cannot use the schema, or the file belongs to another program */
export function assertUsable(db: DatabaseSync, supported: number = schemaAfter(migrations).version): void {
  assertUsableSchema(versionOf(db), supported);
}

/** @throws StoreOpenError when the file belongs to another program, or is older than release 0.1.0 */
export function versionOf(db: DatabaseSync): SchemaVersion {
  if (db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined) return noSchema;
  if (db.prepare("PRAGMA application_id").get()?.["application_id"] !== applicationId)
    throw new StoreOpenError("the file is an SQLite database of another program");
  if (db.prepare("SELECT 1 FROM pragma_table_info('plantstore_schema') WHERE name = 'undone'").get() === undefined)
    throw preReleaseStore();
  const found = db.prepare("SELECT user_version, oldest_server FROM pragma_user_version, plantstore_schema").get();
  return { version: Number(found?.["user_version"]), oldestServer: Number(found?.["oldest_server"]) };
}

/** Returns why a move has set the store aside, if one has. */
export function asideProblemIn(db: DatabaseSync): string | undefined {
  const marks = Object.values(db.prepare("SELECT moved_to, moved_from FROM plantstore_schema").get() ?? {});
  const [movedTo = null, movedFrom = null] = marks.map((mark) => (typeof mark === "string" ? mark : null));
  return asideProblemOf({ movedTo, movedFrom });
}

/** @throws StoreOpenError if a move has set the store aside */
export function assertNotAside(db: DatabaseSync): void {
  const problem = asideProblemIn(db);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

/**
 * Returns why an open store is no longer usable by this release, if it is not. The problem is temporary, because an
 * operator may undo a move, restore the schema or start a newer release.
 */
export function schemaProblemOf(db: DatabaseSync): StoreProblem | undefined {
  try {
    assertUsable(db);
    assertNotAside(db);
  } catch (fault) {
    if (fault instanceof StoreOpenError) return { text: fault.message, isTemporary: true };
  }
  return undefined;
}
