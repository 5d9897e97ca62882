import { closeSync, fstatSync, fsyncSync, openSync, readSync, realpathSync, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../store-open-error.ts";
import { runInTransaction, untilUnlocked } from "./transaction.ts";

// The usual size of a log, in bytes: another server waits a few milliseconds for such a part.
const partBytes = 4 * 2 ** 20;

/** Options of {@link repairLeftoverLog}. */
export interface LeftoverLogOptions {
  /** How long to wait for other connections, in milliseconds. */
  readonly lockTimeoutMs?: number | undefined;
  /** Called before the file is checked, which reads all of it. */
  readonly onCheck?: (() => void) | undefined;
}

/**
 * Makes durable what earlier processes have left in the write-ahead log of a file, and checks that the log belongs to
 * the file; before that, the file must not be read. The page cache of the system, from which SQLite reads the log, may
 * contain commits that are not on disk: their process was killed before it synced them, or the sync failed. After a
 * failed sync the system marks the pages as written, and another sync does not write them. So the whole log is written
 * again, unchanged.
 *
 * The file is checked only if no other process has it open: SQLite copies any log with the right name into it, even one
 * of an earlier file.
 *
 * @throws when that fails; then the file and its log are unchanged
 */
export function repairLeftoverLog(file: string, { lockTimeoutMs, onCheck }: LeftoverLogOptions = {}): void {
  const log = openLog(file);
  if (log === undefined) return;
  try {
    const index = `${realpathSync(file)}-shm`;
    const initialMs = timeOf(index);
    // The last connection that closes copies the log into the file and deletes it, unless it is read-only. A copy of
    // commits that a power loss then removes from the log would damage the file.
    using reader = new DatabaseSync(file, { readOnly: true });
    untilUnlocked(() => reader.exec("PRAGMA user_version"), lockTimeoutMs);
    // The first connection truncates the index (https://sqlite.org/src: unixLockSharedMemory).
    const isFirst = timeOf(index) !== initialMs;
    using writer = new DatabaseSync(file);
    rewriteLog(log, writer, lockTimeoutMs);
    if (!isFirst || fstatSync(log).size === 0) return;
    onCheck?.();
    // No other process must write before the result.
    runInTransaction(writer, () => checkFile(reader), lockTimeoutMs);
  } finally {
    closeSync(log);
  }
}

/** Returns when a file was last written, in milliseconds; `undefined` if it does not exist. */
function timeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

function rewriteLog(log: number, writer: DatabaseSync, lockTimeoutMs?: number): void {
  const part = new Uint8Array(partBytes);
  const writePart = (at: number): number => writeSync(log, part, 0, readSync(log, part, 0, partBytes, at), at);
  let at = 0;
  let count: number;
  do {
    // No other process must write meanwhile.
    count = runInTransaction(writer, () => writePart(at), lockTimeoutMs);
    fsyncSync(log);
    at += count;
  } while (count > 0);
}

/** Reads the whole file with its log. Throws when a page, a row or an index is inconsistent. */
function checkFile(reader: DatabaseSync): void {
  const found = String(reader.prepare("PRAGMA quick_check(1)").get()?.["quick_check"]);
  if (found === "ok") return;
  throw new StoreOpenError(
    `its write-ahead log belongs to another file, or the file is damaged (${found.split("\n").at(-1)}); ` +
      "run `plantstore restore` with a backup",
  );
}

function openLog(file: string): number | undefined {
  try {
    // SQLite puts the log next to the real file, even when it was opened through a link.
    return openSync(`${realpathSync(file)}-wal`, "r+");
  } catch (fault) {
    if (fault instanceof Error && "code" in fault && fault.code === "ENOENT") return undefined;
    throw fault;
  }
}
