import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, readlinkSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { createAdvice } from "../contract/schema-version.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";

/** The mode of a new file. Only the owner has access, because the file contains subjects and idempotency keys. */
const ownerOnly = 0o600;

/** @throws StoreOpenError if an absolute path cannot be used for a store. SQLite's error would lack the reason */
export function assertUsablePath(path: string): void {
  const folder = dirname(path);
  const folderStat = statSync(folder, { throwIfNoEntry: false });
  if (folderStat === undefined) throw new StoreOpenError(`the directory ${folder} does not exist`);
  if (!folderStat.isDirectory()) throw new StoreOpenError(`${folder} is not a directory`);
  // SQLite creates journal files in the database's directory.
  if (isAccessDenied(folder)) throw new StoreOpenError(`the directory ${folder} is not writable`);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) throw new StoreOpenError("the path is a directory");
  if (stat !== undefined && isAccessDenied(path)) throw new StoreOpenError("the file is not writable");
  // Refuses a symbolic link without a target. The target may be on a volume that is not mounted yet, and must not be
  // created elsewhere. `lstatSync` checks the path again, because another process may have created the file.
  if (stat !== undefined || lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new StoreOpenError(`the path is a symbolic link to ${readlinkSync(path)}, which does not exist`);
}

/** @throws StoreOpenError if an absolute path has no file, so that a mistyped path does not become an empty store */
export function assertFileExists(path: string): void {
  if (existsSync(path)) return;
  throw new StoreOpenError(`file not found in ${dirname(path)}: ${createAdvice}`);
}

/**
 * Creates a missing file that only its owner may read and write. SQLite gives the log the same mode. Does not open an
 * existing file, because closing the file would release this process's locks on the file.
 */
export function createPrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", ownerOnly));
  } catch {
    // Ignored: another process has created the file, or SQLite will report why the file cannot be opened.
  }
}

function isAccessDenied(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch {
    return true;
  }
}
