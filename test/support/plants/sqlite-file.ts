import { existsSync } from "node:fs";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { openDatabase } from "../../../src/plantstore/plants/sqlite/database.ts";

/** Creates a store without plants where there is no file. A file that exists is not opened, which would repair it. */
export function createMissingStore(file: string): void {
  if (!existsSync(file)) openDatabase({ file, migrates: true }).close();
}

/** Reads a database file on a connection of the test's own. */
export function readSqlite(file: string, sql: string): Record<string, SQLOutputValue>[] {
  const db = new DatabaseSync(file, { readBigInts: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** The plants in a file, in ascending order. */
export function plantsIn(file: string): bigint[] {
  return readSqlite(file, "SELECT id FROM plants ORDER BY id").map(({ id }) => BigInt(String(id)));
}

/** Puts plants into a file that a store has created. */
export function addPlants(file: string, ids: readonly bigint[]): void {
  const db = new DatabaseSync(file, { readBigInts: true });
  try {
    db.exec("BEGIN");
    const insert = db.prepare("INSERT INTO plants (id) VALUES (?)");
    for (const id of ids) insert.run(id);
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}
