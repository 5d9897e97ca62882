import { chownSync, existsSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { copyInto, syncFolderOf } from "./backup.ts";
import { readDatabaseFile, readOnlyUrl } from "./database.ts";
import { assertSingleName } from "./file-names.ts";
import { assertUsablePath } from "./file-path.ts";
import { assertUsable, versionOf } from "./migrate.ts";
import { assertUndamaged, isLocked, storeErrorOf } from "./problem.ts";
import { openUnfinishedCopy } from "./unfinished-copy.ts";

/**
 * Replaces a store with a copy of a backup, once the copy is complete and on disk. The copy gets the owner and group of
 * the replaced file. No process may have the store open.
 *
 * @throws StoreOpenError if the backup is damaged or not a plant store, or if the store is open or not writable
 */
export function restore(file: string, backup: string): void {
  if (!existsSync(backup)) throw new StoreOpenError(`cannot open ${backup}: file not found`);
  // The backup may have several names, because only a server that uses a backup creates a log.
  readDatabaseFile(backup, assertSoundBackup);
  // If the path is a link, replaces the link's target, because the log is next to the real file.
  const path = existsSync(file) ? realpathSync(file) : resolve(file);
  try {
    assertUsablePath(path);
    if (existsSync(path)) assertSingleName(path);
    using unfinished = openUnfinishedCopy(path);
    copyBackup(backup, unfinished.path);
    replace(path, unfinished.path);
  } catch (fault) {
    throw storeErrorOf(`cannot restore ${file}`, fault);
  }
}

function assertSoundBackup(db: DatabaseSync): void {
  if (versionOf(db).version === 0) throw new StoreOpenError("it is not a plant store; use another backup");
  assertUsable(db);
  assertUndamaged(db);
}

function copyBackup(backup: string, copy: string): void {
  using db = new DatabaseSync(readOnlyUrl(backup), { readOnly: true });
  copyInto(db, copy);
}

function replace(path: string, copy: string): void {
  // A server could not open a store that belongs to root. The call also fails if the copy no longer exists, before
  // other files are removed.
  const { uid, gid } = statSync(existsSync(path) ? path : copy);
  chownSync(copy, uid, gid);
  using lock = existsSync(path) ? lockExclusively(path) : undefined;
  // With the lock, the file contains all commits in its log. Without the lock, the file may lack commits, so the file
  // is removed before the log. A server that started with the file but without its log would restore deleted plants.
  if (lock === undefined) rmSync(path, { force: true });
  // SQLite would copy an old log into the new file. So the log's removal must be durable before the rename.
  for (const end of ["-wal", "-shm", "-journal"]) rmSync(`${path}${end}`, { force: true });
  syncFolderOf(path);
  renameSync(copy, path);
  syncFolderOf(path);
}

// Returns `undefined` if the file is too damaged to lock.
function lockExclusively(path: string): DatabaseSync | undefined {
  const db = new DatabaseSync(path);
  try {
    // Fails while another connection is open, because only the last connection can change the journal mode from WAL. In
    // other modes, connections hold no permanent lock, so BEGIN EXCLUSIVE is sufficient.
    db.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    return db;
  } catch (fault) {
    db.close();
    if (!isLocked(fault)) return undefined;
    throw new StoreOpenError("another process has the file open; stop the server first", { cause: fault });
  }
}
