import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const copyNames = /\.[0-9a-f]{16}\.unfinished(?:-journal)?$/;

/** The time without a write after which a copy is abandoned, in milliseconds: a day. */
const abandonedMs = 24 * 3_600_000;

/**
 * Returns a new path, next to `path`, for a copy that will be renamed to `path`. Removes the copies that killed
 * processes have left in the folder. Disposing of the path removes a copy that has not been renamed.
 */
export function openUnfinishedCopy(path: string): Disposable & { readonly path: string } {
  removeAbandonedCopies(dirname(path));
  const copy = `${path}.${randomBytes(8).toString("hex")}.unfinished`;
  return { path: copy, [Symbol.dispose]: () => rmSync(copy, { force: true }) };
}

function removeAbandonedCopies(folder: string): void {
  for (const name of namesIn(folder).filter((one) => copyNames.test(one))) {
    const copy = join(folder, name);
    try {
      if (Date.now() - statSync(copy).mtimeMs > abandonedMs) rmSync(copy);
    } catch {
      // Kept: a file that this process may not remove prevents neither a new copy nor the removal of other files.
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // A folder that cannot be listed can still get a new copy.
    return [];
  }
}
