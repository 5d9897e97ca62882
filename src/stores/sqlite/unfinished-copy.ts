import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isLocked } from "./problem.ts";

/** A copy's place until the copy is complete. Disposing of it removes a copy that has not been renamed. */
export interface UnfinishedCopy extends Disposable {
  readonly path: string;
}

/** How the lock file's name ends. Its lock shows that the process that writes a copy is running. */
const lockEnd = "-lock";

const lockNames = /\.[0-9a-f]{16}\.unfinished-lock$/;

/**
 * Returns a new path, next to `path`, for a copy that will be renamed to `path`. Removes the copies that killed
 * processes have left in the folder.
 *
 * The path has a lock file. The system releases the lock when a process is killed, so that a copy is removed only if no
 * process writes it. Process ids would not show that, because containers that share a volume have different processes
 * with one id.
 */
export function openUnfinishedCopy(path: string): UnfinishedCopy {
  removeAbandonedCopies(dirname(path));
  const copy = `${path}.${randomBytes(8).toString("hex")}.unfinished`;
  const lockFile = `${copy}${lockEnd}`;
  const lock = lockExclusively(lockFile);
  // Another process has found the lock file before it was locked, and removes it.
  if (lock === undefined || !existsSync(lockFile)) {
    lock?.close();
    return openUnfinishedCopy(path);
  }
  return {
    path: copy,
    [Symbol.dispose]: () => {
      rmSync(copy, { force: true });
      rmSync(lockFile, { force: true });
      lock.close();
    },
  };
}

function removeAbandonedCopies(folder: string): void {
  for (const name of namesIn(folder)) {
    if (lockNames.test(name)) removeIfAbandoned(join(folder, name));
  }
}

/** Returns the names in a folder, or none if it cannot be listed, because writing the copy reports the cause. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function removeIfAbandoned(lockFile: string): void {
  try {
    using lock = lockExclusively(lockFile);
    if (lock === undefined) return;
    // The lock file is removed last. A process that is killed in between leaves it to the next one.
    const copy = lockFile.slice(0, -lockEnd.length);
    for (const end of ["-journal", ""]) rmSync(`${copy}${end}`, { force: true });
    rmSync(lockFile, { force: true });
  } catch {
    // Kept, because a file that this process may not lock or remove does not prevent a new copy.
  }
}

/**
 * Returns a connection that locks an empty file, which it creates, or `undefined` if another one has locked the file.
 */
function lockExclusively(path: string): DatabaseSync | undefined {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    // The journal is in memory, so that a killed process does not leave a journal file.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (fault) {
    db.close();
    if (isLocked(fault)) return undefined;
    throw fault;
  }
}
