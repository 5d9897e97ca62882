import { closeSync, existsSync, openSync } from "node:fs";

/**
 * Creates a file that only its owner may read and write, unless there is one already; SQLite gives its log the same mode.
 * A file that exists is not opened: closing it would release the locks that this process holds on it.
 */
export function createPrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", ownerOnly));
  } catch {
    // Another process has created it meanwhile, or SQLite says why it cannot be opened.
  }
}

/** The mode of a file with names of callers and keys of deletions. */
const ownerOnly = 0o600;
