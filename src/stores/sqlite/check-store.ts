import { closeSync, existsSync, openSync, readSync, realpathSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { checkDatabaseFile } from "./database.ts";
import { storeErrorOf } from "./problem.ts";
import { beginWrite } from "./transaction.ts";

// The longest wait for the lock, in milliseconds: several times as long as a batch of a server or an import holds it.
const lockTimeoutMs = 1_000;

// The free space that a server needs, in bytes. A commit with a few deletions writes this much to a new log.
const freeBytesMin = 64 * 1_024;

// SQLITE_READONLY_ROLLBACK (sqlite.org/rescode.html).
const readOnlyRollback = 776;

/**
 * Checks a store's file as a server does: its schema and pages, the free space, and the lock for a write, in a
 * transaction that is rolled back. Never creates, writes or checkpoints a file.
 *
 * @returns warnings for the operator
 * @throws StoreOpenError that names the file and the problem
 */
export function checkSqliteStore(file: string): readonly string[] {
  try {
    checkDatabaseFile(file);
  } catch (fault) {
    if (!isReadOnlyRollback(fault)) throw fault;
    return [`${file} has an interrupted transaction, which the next start rolls back; the file was not checked`];
  }
  try {
    assertWritable(file);
  } catch (fault) {
    throw storeErrorOf(`cannot write ${file}`, fault);
  }
  return [];
}

function isReadOnlyRollback(fault: unknown): boolean {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return cause instanceof Error && "errcode" in cause && cause.errcode === readOnlyRollback;
}

function assertWritable(file: string): void {
  const path = realpathSync(file);
  const { bavail, bfree, bsize } = statfsSync(dirname(path));
  // Only root may use the reserved blocks.
  const freeBytes = (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  if (freeBytes < freeBytesMin) throw new StoreOpenError("the disk is full");
  // Without a log, no process has a file with a write-ahead log open. Opening such a file would create the log.
  if (existsSync(`${path}-wal`) || !usesLog(path)) assertUnlocked(path);
}

// The file format write version (sqlite.org/fileformat.html#the_database_header): 2 with a write-ahead log.
const writeVersionAt = 18;
const logVersion = 2;

/**
 * Returns whether a file that no process has open with a write-ahead log would be opened with one. Closing the file
 * releases this process's locks, so this process must not have the file open.
 */
function usesLog(path: string): boolean {
  const version = new Uint8Array(1);
  const descriptor = openSync(path, "r");
  try {
    readSync(descriptor, version, 0, version.length, writeVersionAt);
  } finally {
    closeSync(descriptor);
  }
  return version[0] === logVersion;
}

function assertUnlocked(path: string): void {
  // The connection that is closed last checkpoints the log, unless it is read-only.
  using reader = new DatabaseSync(path, { readOnly: true });
  reader.exec("PRAGMA user_version");
  using writer = new DatabaseSync(path);
  beginWrite(writer, lockTimeoutMs);
  writer.exec("ROLLBACK");
}
