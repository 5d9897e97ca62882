import { existsSync, realpathSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { checkDatabaseFile } from "./database.ts";
import { usesLog } from "./file-names.ts";
import { codeOf, storeErrorOf } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

// Timeout for the lock, in milliseconds. A server's or an import's batch holds the lock for a fraction of this time.
const lockTimeoutMs = 1_000;

// Minimum free space for a server, in bytes. A commit with a few deletions writes about 64 KiB to a new log.
const freeBytesMin = 64 * 1_024;

// SQLITE_READONLY_ROLLBACK (sqlite.org/rescode.html).
const readOnlyRollback = 776;

/**
 * Checks whether a server could use a store's file. Checks the schema, the pages and the free space. Also takes the
 * write lock, and rolls the transaction back. Never creates, writes or checkpoints a file.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the file and the problem
 */
export function checkSqliteStore(file: string): readonly string[] {
  try {
    checkDatabaseFile(file);
  } catch (fault) {
    if (!(fault instanceof StoreOpenError) || codeOf(fault.cause) !== readOnlyRollback) throw fault;
    return [`${file} has an interrupted transaction, which the next start rolls back; the file was not checked`];
  }
  try {
    assertWritable(file);
  } catch (fault) {
    throw storeErrorOf(`cannot write ${file}`, fault);
  }
  return [];
}

function assertWritable(file: string): void {
  const path = realpathSync(file);
  const { bavail, bfree, bsize } = statfsSync(dirname(path));
  // Only root may use a file system's reserved blocks.
  const freeBytes = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  if (freeBytes < freeBytesMin) throw new StoreOpenError("the disk is full");
  // If a file in WAL mode has no log, no process has opened it by this name. Opening the file would create the log.
  if (existsSync(`${path}-wal`) || !usesLog(path)) assertUnlocked(path);
}

function assertUnlocked(path: string): void {
  // The last connection to close checkpoints the log, unless the last connection is read-only.
  using reader = new DatabaseSync(path, { readOnly: true });
  reader.exec("PRAGMA user_version");
  using writer = new DatabaseSync(path);
  beginWrite(writer, lockTimeoutMs);
  writer.exec("ROLLBACK");
}
