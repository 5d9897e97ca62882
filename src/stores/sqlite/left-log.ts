import { closeSync, fstatSync, fsyncSync, openSync, readSync, realpathSync, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../store-open-error.ts";
import { runInTransaction, untilUnlocked } from "./transaction.ts";

// As much as a log usually holds, in bytes: a server beside an opening waits a few milliseconds for it.
const partBytes = 4 * 2 ** 20;

/** What an opening does about a log that was left. */
export interface LeftLogOptions {
  /** How long to wait for other connections, in milliseconds. */
  readonly lockTimeoutMs?: number | undefined;
  /** Called before the file is checked, which reads all of it. */
  readonly onCheck?: (() => void) | undefined;
}

/**
 * Makes durable what earlier processes have left in the write-ahead log of a file, and checks that both belong together;
 * before that, nothing may be answered from the file. The cache of the system, from which SQLite reads the log, may hold
 * commits that the disk does not: their process was killed before it synced them, or the sync failed. After a failed sync
 * the system takes the pages for written, and no other sync brings them to the disk. So everything is written again, as
 * it is.
 *
 * The file is checked only if no other process has it open: SQLite copies into it any log of its name, even of a file
 * that was there before.
 *
 * @throws when that fails; then the file and its log are left as they were found
 */
export function repairLeftLog(file: string, { lockTimeoutMs, onCheck }: LeftLogOptions = {}): void {
  const log = openLog(file);
  if (log === undefined) return;
  try {
    const index = `${realpathSync(file)}-shm`;
    const usedMs = timeOf(index);
    // The last connection that closes copies the log into the file and deletes it, unless it can only read. A copy of
    // commits that a power loss takes out of the log would damage the file.
    using reader = new DatabaseSync(file, { readOnly: true });
    untilUnlocked(() => reader.exec("PRAGMA user_version"), lockTimeoutMs);
    // The first connection of all empties the index (https://sqlite.org/src: unixLockSharedMemory).
    const isFirst = timeOf(index) !== usedMs;
    using writer = new DatabaseSync(file);
    writeAgain(log, writer, lockTimeoutMs);
    if (!isFirst || fstatSync(log).size === 0) return;
    onCheck?.();
    // Nobody else may write before the result.
    runInTransaction(writer, () => checkFile(reader), lockTimeoutMs);
  } finally {
    closeSync(log);
  }
}

/** Returns when a file was last written, in milliseconds; `undefined` if there is none. */
function timeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

function writeAgain(log: number, writer: DatabaseSync, lockTimeoutMs?: number): void {
  const part = new Uint8Array(partBytes);
  const writePart = (at: number): number => writeSync(log, part, 0, readSync(log, part, 0, partBytes, at), at);
  let at = 0;
  let count: number;
  do {
    // Nobody else may write meanwhile.
    count = runInTransaction(writer, () => writePart(at), lockTimeoutMs);
    fsyncSync(log);
    at += count;
  } while (count > 0);
}

/** Reads all of the file, with its log. Throws when that finds a page, a row or an index that does not fit. */
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
