import { closeSync, existsSync, openSync } from "node:fs";

/**
 * Creates a file that only its owner may read and write, unless it exists; SQLite gives its log the same mode. An
 * existing file is not opened: closing it would release the locks that this process holds on it.
 */
export function createPrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", ownerOnly));
  } catch {
    // Another process has created the file meanwhile, or SQLite will report why it cannot be opened.
  }
}

/** Only the owner has access, because the file contains names of callers and idempotency keys. */
const ownerOnly = 0o600;
