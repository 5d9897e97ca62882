import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** The real paths of the files that stores and databases of this process have open. */
const claims = new Set<{ readonly path: string }>();

/**
 * Marks a file as open in this process until the result is disposed of.
 *
 * The log's repair and integrity check open the -shm file, and closing any descriptor of that file releases all locks
 * of the process (POSIX fcntl). Other processes could then write during a commit of this process, and damage the file.
 */
export function claimFile(file: string): Disposable {
  const claim = { path: realPathOf(file), [Symbol.dispose]: (): void => void claims.delete(claim) };
  claims.add(claim);
  return claim;
}

/** Returns whether this process has a file open, see {@link claimFile}. */
export function isClaimed(file: string): boolean {
  const path = realPathOf(file);
  return [...claims].some((claim) => claim.path === path);
}

function realPathOf(file: string): string {
  const path = resolve(file);
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(path);
  // A missing folder is reported when the file is opened.
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path;
}
