import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync, realpathSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-options.ts";
import { findDamage, repairAdvice } from "./problem.ts";
import { runInTransaction, retryWhileLocked } from "./transaction.ts";
import { prepareIndexReader } from "./file-identity.ts";

// Maximum number of bytes that are rewritten per lock. A log of usual size delays another server a few milliseconds.
const partBytes = 4 * 2 ** 20;

/**
 * Makes an existing write-ahead log durable, and checks that it belongs to the file. Call this before reading the file.
 *
 * The system's page cache may contain commits that are not on disk, because a process was killed before a sync, or a
 * sync failed, after which the system marks the pages as written. So this function writes the whole log again.
 *
 * SQLite copies any log with the right name into the file. So the file is checked with the log, unless a process has
 * committed since the index was built from the log, because that process has done the check, which blocks writes.
 *
 * @param lockTimeoutMs - how long to wait for other connections, in milliseconds
 * @param onCheck - called before the check, which reads the whole file
 * @throws if the log cannot be made durable or the check fails. The file and the log are then unchanged
 */
export function repairLeftoverLog(file: string, lockTimeoutMs?: number, onCheck?: () => void): void {
  // Closes the descriptors after the connections, because closing a descriptor releases the connections' locks (POSIX).
  using files = new DisposableStack();
  const log = openLeftoverLog(file);
  if (log === undefined) return;
  files.adopt(log, closeSync);
  // The connection is read-only. When the last writable connection closes, SQLite copies the log into the file and
  // deletes the log. The file would be damaged if a power loss then removed copied commits from the log.
  using reader = new DatabaseSync(file, { readOnly: true });
  retryWhileLocked(() => reader.exec("PRAGMA user_version"), lockTimeoutMs);
  const index = `${realpathSync(file)}-shm`;
  // SQLite does not read the log of an empty file, and then builds no index.
  if (!existsSync(index)) return;
  const readIndex = prepareIndexReader(files.adopt(openSync(index, "r"), closeSync));
  using writer = new DatabaseSync(file);
  rewriteLog(log, writer, lockTimeoutMs);
  if (readIndex()?.commits !== 0 || fstatSync(log).size === 0) return;
  onCheck?.();
  // The transaction prevents other processes from writing during the check.
  runInTransaction(writer, () => assertLogFits(reader), lockTimeoutMs);
}

function rewriteLog(log: number, writer: DatabaseSync, lockTimeoutMs?: number): void {
  const part = new Uint8Array(partBytes);
  const writePart = (at: number): number => writeSync(log, part, 0, readSync(log, part, 0, partBytes, at), at);
  let at = 0;
  let count: number;
  do {
    // The transaction prevents other processes from writing to the log.
    count = runInTransaction(writer, () => writePart(at), lockTimeoutMs);
    fsyncSync(log);
    at += count;
  } while (count > 0);
}

function assertLogFits(reader: DatabaseSync): void {
  const damage = findDamage(reader);
  if (damage === undefined) return;
  throw new StoreOpenError(
    `its write-ahead log belongs to another file, or the file is damaged (${damage}); ${repairAdvice}`,
  );
}

function openLeftoverLog(file: string): number | undefined {
  try {
    // SQLite puts the log next to the real file, even if the file was opened through a link.
    return openSync(`${realpathSync(file)}-wal`, "r+");
  } catch (fault) {
    if (fault instanceof Error && "code" in fault && fault.code === "ENOENT") return undefined;
    throw fault;
  }
}
