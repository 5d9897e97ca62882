import { copyFileSync, existsSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";

/** Creates a store without plants, unless the file exists. An existing file is not opened, which would repair it. */
export function createMissingStore(file: string): void {
  if (!existsSync(file)) openDatabase({ file, migrates: true }).close();
}

/** Overwrites a file in place, with bytes that are neither a database nor a log. */
export function overwrite(path: string): void {
  writeFileSync(path, Buffer.alloc(statSync(path).size, 0xa5), { flag: "r+" });
}

/** Milliseconds that the test's own connection waits for a lock, which a store holds while it recovers after a kill. */
const timeout = 5_000;

/** Reads a database file on the test's own connection. */
export function readSqlite(file: string, sql: string): Record<string, SQLOutputValue>[] {
  const db = new DatabaseSync(file, { readBigInts: true, timeout });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** Runs SQL on a database file on the test's own connection. */
export function runSqlite(file: string, sql: string): void {
  const db = new DatabaseSync(file, { timeout });
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

/** The plants in a file, in ascending order. */
export const plantsIn = (file: string): bigint[] => readIds(file, "SELECT id FROM plants ORDER BY id");

/** The plants of the deletion records in a file, in the order of the deletions. */
export const recordedIn = (file: string): bigint[] =>
  readIds(file, "SELECT plant_id AS id FROM deletions ORDER BY seq");

const readIds = (file: string, sql: string): bigint[] => readSqlite(file, sql).map(({ id }) => BigInt(String(id)));
const dayMs = 24 * 3_600_000;

/** Makes all deletion records of a file older, with their idempotency keys. */
export function ageRecords(file: string, days: number): void {
  for (const table of ["deletions", "idempotency_keys"])
    runSqlite(file, `UPDATE ${table} SET deleted_at = deleted_at - ${days * dayMs}`);
}

export function addPlants(file: string, ids: readonly bigint[]): void {
  const db = new DatabaseSync(file, { readBigInts: true, timeout });
  try {
    db.exec("BEGIN");
    const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
    for (const id of ids) insert.run(id);
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}

/**
 * Leaves plants 7 to 9 as a crash does. The deletion of 8 is only in the log, and the file lacks most pages in a table
 * `filler`. The plants can be read, but SQLite does not copy the log into the file.
 */
export function leaveTruncatedFile(file: string): void {
  const crashing = `${file}.crashing`;
  using db = openDatabase({ file: crashing, plantsWhenCreated: { first: 7n, last: 9n } });
  const bytes = statSync(crashing).size;
  // SQLite treats a file as damaged when it lacks much more than 64 KiB (sqlite.org/src: walCheckpoint).
  db.exec("CREATE TABLE filler AS SELECT zeroblob(1048576); PRAGMA wal_checkpoint(TRUNCATE)");
  db.exec("DELETE FROM plants WHERE id = 8");
  for (const end of ["", "-wal"]) copyFileSync(`${crashing}${end}`, `${file}${end}`);
  truncateSync(file, bytes);
}
