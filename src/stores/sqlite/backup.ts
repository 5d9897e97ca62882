import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-options.ts";
import { openDatabase, readDatabaseFile, readOnlyUrl } from "./database.ts";
import { assertSingleName, assertUsablePath, createPrivateFile } from "./file-names.ts";
import { assertUsable, versionOf } from "./migrate.ts";
import { assertUndamaged, isLocked, storeErrorOf } from "./problem.ts";

/**
 * Copies a snapshot of a store's file. A server may use the store during the backup. The copy is also a plant store.
 * The copy's file is created only once the copy is complete and durable.
 *
 * @throws StoreOpenError if the store cannot be read, or the copy, its log or its journal exists or cannot be written
 */
export function backUp(file: string, copy: string): void {
  // SQLite would write a leftover log or journal into the copy.
  const existing = ["", "-wal", "-journal"].map((end) => `${copy}${end}`).find((path) => existsSync(path));
  if (existing !== undefined) throw new StoreOpenError(`cannot write ${existing}: the file already exists`);
  using db = openDatabase({ file, isAside: true });
  let hasCopy = false;
  try {
    using unfinished = openUnfinishedCopy(copy);
    copyInto(db, unfinished.path);
    // Unlike `rename`, `link` does not replace a file that another process has created.
    linkSync(unfinished.path, copy);
    hasCopy = true;
    syncFolderOf(copy);
  } catch (fault) {
    if (hasCopy) rmSync(copy);
    throw storeErrorOf(`cannot write ${copy}`, fault);
  }
}

/** Copies a database into a file that only its owner may access, and syncs the copy. */
function copyInto(db: DatabaseSync, copy: string): void {
  createPrivateFile(copy);
  db.prepare("VACUUM INTO ?").run(resolve(copy));
  // SQLite does not guarantee that the copy is synced (sqlite.org/lang_vacuum.html).
  syncPath(copy);
}

/** Syncs a file's folder, which makes new names durable. Does nothing on Windows, where folders cannot be opened. */
function syncFolderOf(path: string): void {
  if (process.platform !== "win32") syncPath(dirname(resolve(path)));
}

function syncPath(path: string): void {
  using files = new DisposableStack();
  fsyncSync(files.adopt(openSync(path, "r"), closeSync));
}

/**
 * Replaces a store with a copy of a backup, once the copy is complete and on disk. The copy gets the owner and group of
 * the replaced file. No process may have the store open.
 *
 * @throws StoreOpenError if the backup is damaged or not a plant store, or if the store is open or not writable
 */
export function restore(file: string, backup: string): void {
  if (!existsSync(backup)) throw new StoreOpenError(`cannot open ${backup}: file not found`);
  // The backup may have several names, because only a server that uses a backup creates a log.
  readDatabaseFile(backup, (db) => {
    if (versionOf(db).version === 0) throw new StoreOpenError("it is not a plant store; use another backup");
    assertUsable(db);
    assertUndamaged(db);
  });
  // If the path is a link, replaces the link's target, because the log is next to the real file.
  const path = existsSync(file) ? realpathSync(file) : resolve(file);
  try {
    assertUsablePath(path);
    assertSingleName(path);
    using unfinished = openUnfinishedCopy(path);
    {
      using db = new DatabaseSync(readOnlyUrl(backup), { readOnly: true });
      copyInto(db, unfinished.path);
    }
    replaceFile(path, unfinished.path);
  } catch (fault) {
    throw storeErrorOf(`cannot restore ${file}`, fault);
  }
}

function replaceFile(path: string, copy: string): void {
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

/**
 * Returns a new path for an unfinished copy of `path`, in the same folder. The caller renames the finished copy to
 * `path`. Disposing removes a copy that was not renamed.
 */
function openUnfinishedCopy(path: string): Disposable & { readonly path: string } {
  const copy = `${path}.${randomBytes(8).toString("hex")}.unfinished`;
  return { path: copy, [Symbol.dispose]: () => rmSync(copy, { force: true }) };
}
