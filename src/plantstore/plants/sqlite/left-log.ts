import { closeSync, fsyncSync, openSync, readSync, realpathSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { runInTransaction, untilUnlocked } from "./transaction.ts";

// As much as a log usually holds, in bytes: a server beside an opening waits a few milliseconds for it.
const partBytes = 4 * 2 ** 20;

/**
 * Makes durable what earlier processes have left in the write-ahead log of a file; before that, nothing may be answered
 * from the file. The cache of the system, from which SQLite reads the log, may hold commits that the disk does not:
 * their process was killed before it synced them, or the sync failed. After a failed sync the system takes the pages for
 * written, and no other sync brings them to the disk. So everything is written again, as it is.
 *
 * @throws when that fails; then the log is left as it was found
 */
export function makeLeftLogDurable(file: string, lockTimeoutMs?: number): void {
  const log = openLog(file);
  if (log === undefined) return;
  try {
    // The last connection that closes copies the log into the file and deletes it, unless it can only read. A copy of
    // commits that a power loss takes out of the log would damage the file.
    using reader = new DatabaseSync(file, { readOnly: true });
    untilUnlocked(() => reader.exec("PRAGMA user_version"), lockTimeoutMs);
    using writer = new DatabaseSync(file);
    const part = new Uint8Array(partBytes);
    const writeAgain = (at: number): number => writeSync(log, part, 0, readSync(log, part, 0, partBytes, at), at);
    let at = 0;
    let count: number;
    do {
      // Nobody else may write meanwhile.
      count = runInTransaction(writer, () => writeAgain(at), lockTimeoutMs);
      fsyncSync(log);
      at += count;
    } while (count > 0);
  } finally {
    closeSync(log);
  }
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
