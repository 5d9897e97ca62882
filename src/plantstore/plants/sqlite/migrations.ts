/**
 * Creates schema version 1.
 *
 * - `plants` is a rowid table: the id is the key of the b-tree itself, and every int64 is a valid rowid.
 * - In `deletions`, plant_id is not unique: a restored plant can be deleted again. deleted_at is in milliseconds since
 *   1970-01-01 UTC; batch counts the commits.
 * - Keys are random, so an index of the records would write another page for each record that is dropped. Keys of a table
 *   of their own can be dropped later, a page at a time. swept_keys has where the last slice of keys ended.
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
  INSERT INTO swept_keys VALUES ('');`;

/**
 * The steps from schema version 1. Forward only: a published step is never edited; a change is a new step at the end.
 * Step `i` leads to version `i + 2`.
 */
export const migrations: readonly string[] = [];

/** Returns the version to which all steps lead. */
export const newestVersion = (steps: readonly string[] = migrations): number => steps.length + 1;
