import { type SchemaVersion, schemaAfter, type SchemaStep } from "../contract/schema-version.ts";

/** One step to a newer schema. During the step, the previous release's servers wait for the lock. */
export interface Migration extends SchemaStep {
  /** The statements. All steps run in one transaction. Must take less than a second, even for a large store. */
  readonly sql: string;
}

/**
 * Creates schema version 1.
 *
 * - `plants` is a rowid table. The id is the key of the b-tree, and every int64 is a valid rowid.
 * - In `deletions`, plant_id is not unique, because a restored plant can be deleted again. deleted_at is in
 *   milliseconds since 1970-01-01 UTC. batch is a number that counts commits.
 * - `plantstore_schema` contains the oldest release that can use the schema, and the marks of moves
 *   ({@link MoveMarks}). `user_version` is the schema version.
 * - Idempotency keys are in a separate table, and are dropped later, a page at a time. Keys are random, so an index on
 *   the records would cost a page write per dropped record. `swept_keys` contains the last checked key.
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
export const migrations: readonly Migration[] = [];

/** The schema version of this release. */
export const ownSchema: SchemaVersion = schemaAfter(migrations);
