import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const copyNames = /\.[0-9a-f]{16}\.unfinished(?:-journal)?$/;

/** Time without a write after which a copy counts as abandoned, in milliseconds: one day. */
const abandonedMs = 24 * 3_600_000;

/**
 * Returns a new path for an unfinished copy of `path`, in the same folder. The caller renames the finished copy to
 * `path`. Disposing removes a copy that was not renamed. Also removes the copies that killed processes have left.
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
      // Ignores the error, because a new copy is possible even if an abandoned copy cannot be removed.
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Ignores a folder that cannot be listed. A new copy may still be possible.
    return [];
  }
}
