import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StoreOpenError } from "../store-open-error.ts";
import { openDatabase } from "./database.ts";
import { createPrivateFile } from "./private-file.ts";
import { fileProblemOf } from "./problem.ts";

/**
 * Copies a snapshot of the file of a store, while a server keeps using it. The copy is a plant store, too; it appears
 * complete and durable, or not at all.
 *
 * @throws StoreOpenError when the store cannot be read, or the copy exists already or cannot be written
 */
export function backUp(file: string, copy: string): void {
  if (existsSync(copy)) throw new StoreOpenError(`cannot write ${copy}: the file already exists`);
  const unfinished = `${copy}.${process.pid}.unfinished`;
  const db = openDatabase({ file });
  try {
    createPrivateFile(unfinished);
    db.prepare("VACUUM INTO ?").run(resolve(unfinished));
    // SQLite does not guarantee that the copy is synced (sqlite.org/lang_vacuum.html).
    syncPath(unfinished);
    // Unlike a rename, a link does not replace a file that was created meanwhile.
    linkSync(unfinished, copy);
    makeNameDurable(copy);
  } catch (fault) {
    throw new StoreOpenError(`cannot write ${copy}: ${fileProblemOf(fault).text}`, { cause: fault });
  } finally {
    rmSync(unfinished, { force: true });
    db.close();
  }
}

// A new name is durable once its folder is synced; on Windows folders cannot be opened.
function makeNameDurable(path: string): void {
  if (process.platform === "win32") return;
  try {
    syncPath(dirname(resolve(path)));
  } catch (fault) {
    rmSync(path);
    throw fault;
  }
}

/** Syncs the content of a file, or the names in a folder. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
