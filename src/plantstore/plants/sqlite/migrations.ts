/**
 * The schema of the SQLite store, one step per version. Forward only: a published step is never edited; a change is a
 * new step at the end. Step `i` creates version `i + 1`.
 */
export const migrations: readonly string[] = [
  // A rowid table: the id is the key of the b-tree itself, and every int64 is a valid rowid.
  `CREATE TABLE plants (id INTEGER PRIMARY KEY) STRICT;`,
  // plant_id is not unique: a restored plant can be deleted again. deleted_at is in milliseconds since 1970-01-01 UTC;
  // batch counts the commits.
  `CREATE TABLE deletions (
     seq INTEGER PRIMARY KEY,
     plant_id INTEGER NOT NULL,
     deleted_at INTEGER NOT NULL,
     subject TEXT NOT NULL,
     request_id TEXT NOT NULL,
     batch INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX deletions_by_time ON deletions (deleted_at);`,
  // The index has no entries for deletions without a key, which pay nothing for it.
  `ALTER TABLE deletions ADD COLUMN idempotency_key TEXT;
   CREATE UNIQUE INDEX deletions_by_key ON deletions (idempotency_key) WHERE idempotency_key IS NOT NULL;`,
  // Keys are random, so an index of the records writes another page for each record that is dropped. Keys of a table of
  // their own can be dropped later, a page at a time. Those that are in the records stay there until these are dropped:
  // to move millions would keep a server from starting. swept_keys has where the last slice of keys ended.
  `CREATE TABLE idempotency_keys (
     idempotency_key TEXT PRIMARY KEY,
     seq INTEGER NOT NULL,
     deleted_at INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE swept_keys (up_to TEXT NOT NULL) STRICT;
   INSERT INTO swept_keys VALUES ('');`,
];
