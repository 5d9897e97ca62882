import type { DatabaseSync } from "node:sqlite";
import { asideProblemOf } from "../contract/move-marks.ts";
import {
  assertUsableSchema,
  noSchema,
  preReleaseStore,
  schemaAfter,
  type SchemaVersion,
} from "../contract/schema-version.ts";
import type { StoreProblem } from "../contract/store-health.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { type Migration, migrations, ownSchema, tablesSql } from "./migrations.ts";
import { runInTransaction } from "./transaction.ts";

/** All ids from `first` to `last`, inclusive. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

// "PLNT" in ASCII. Identifies a plant store's database (sqlite.org/pragma.html#pragma_application_id).
const applicationId = 0x504c4e54n;

/** Called once a migration is durable, with the versions before and after. A new file had version 0. */
export type OnMigrated = (from: number, to: number) => void;

/** Options for {@link migrate}. `steps` are the migration steps from version 1. */
export interface MigrateOptions {
  readonly plantsWhenCreated?: IdRange | undefined;
  readonly lockTimeoutMs?: number | undefined;
  readonly onMigrated?: OnMigrated | undefined;
  readonly steps?: readonly Migration[];
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
  const isDone = (version: number): boolean => version >= to;
  if (!isDone(versionOf(db).version)) {
    const from = runInTransaction(
      db,
      () => {
        // Checks the version again under the lock, because two processes may open a new file at the same time.
        const { version } = versionOf(db);
        if (isDone(version)) return version;
        if (version === 0) createTables(db, plantsWhenCreated);
        for (const { sql } of steps.slice(Math.max(version - 1, 0))) db.exec(sql);
        db.exec(`PRAGMA user_version = ${to}; UPDATE plantstore_schema SET oldest_server = ${oldestServer}`);
        return version;
      },
      lockTimeoutMs,
    );
    if (!isDone(from)) onMigrated?.(from, to);
  }
  assertUsable(db, to);
}

function createTables(db: DatabaseSync, plants: IdRange | undefined): void {
  db.exec(`${tablesSql} PRAGMA application_id = ${applicationId}`);
  if (plants === undefined) return;
  const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
  for (let id = plants.first; id <= plants.last; id++) insert.run(id);
}

/** @throws StoreOpenError when a release cannot use the schema, or the file belongs to another program */
export function assertUsable(db: DatabaseSync, supported: number = ownSchema.version): void {
  assertUsableSchema(versionOf(db), supported);
}

/** @throws StoreOpenError when the file belongs to another program, or is older than release 0.1.0 */
export function versionOf(db: DatabaseSync): SchemaVersion {
  if (db.prepare("SELECT 1 FROM sqlite_schema").get() === undefined) return noSchema;
  if (db.prepare("PRAGMA application_id").get()?.["application_id"] !== applicationId) {
    throw new StoreOpenError("the file is an SQLite database of another program");
  }
  if (db.prepare("SELECT 1 FROM pragma_table_info('plantstore_schema') WHERE name = 'undone'").get() === undefined)
    throw preReleaseStore();
  const found = db.prepare("SELECT user_version, oldest_server FROM pragma_user_version, plantstore_schema").get();
  return { version: Number(found?.["user_version"]), oldestServer: Number(found?.["oldest_server"]) };
}

/** Returns why a move has set the store aside, if one has. */
export function asideProblemIn(db: DatabaseSync): string | undefined {
  const { moved_to: movedTo, moved_from: movedFrom } =
    db.prepare("SELECT moved_to, moved_from FROM plantstore_schema").get() ?? {};
  return asideProblemOf({ movedTo: textOrNull(movedTo), movedFrom: textOrNull(movedFrom) });
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
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
