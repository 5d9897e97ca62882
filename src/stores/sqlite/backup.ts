import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { openDatabase } from "./database.ts";
import { createPrivateFile } from "./file-path.ts";
import { storeErrorOf } from "./problem.ts";
import { openUnfinishedCopy } from "./unfinished-copy.ts";

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
export function copyInto(db: DatabaseSync, copy: string): void {
  createPrivateFile(copy);
  db.prepare("VACUUM INTO ?").run(resolve(copy));
  // SQLite does not guarantee that the copy is synced (sqlite.org/lang_vacuum.html).
  syncPath(copy);
}

/** Syncs a file's folder, which makes new names durable. Does nothing on Windows, where folders cannot be opened. */
export function syncFolderOf(path: string): void {
  if (process.platform !== "win32") syncPath(dirname(resolve(path)));
}

function syncPath(path: string): void {
  using files = new DisposableStack();
  fsyncSync(files.adopt(openSync(path, "r"), closeSync));
}
