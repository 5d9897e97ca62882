import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** The number of stores and databases of this process that have a file open, by the file's real path. */
const openCounts = new Map<string, number>();

/**
 * Counts a file as open in this process until the result is disposed of.
 *
 * The log's repair and integrity check open the -shm file, and closing any descriptor of that file releases all locks
 * of the process (POSIX fcntl). Other processes could then write during a commit of this process, and damage the file.
 */
export function claimFile(file: string): Disposable {
  const path = realPathOf(file);
  const add = (change: number): void => void openCounts.set(path, (openCounts.get(path) ?? 0) + change);
  add(1);
  // Disposing twice must not release the claim of a later store.
  const claim = new DisposableStack();
  claim.defer(() => add(-1));
  return claim;
}

/** Returns whether this process has a file open, see {@link claimFile}. */
export function isClaimed(file: string): boolean {
  return (openCounts.get(realPathOf(file)) ?? 0) > 0;
}

function realPathOf(file: string): string {
  const path = resolve(file);
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(path);
  // A missing folder is reported when the file is opened.
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path;
}
