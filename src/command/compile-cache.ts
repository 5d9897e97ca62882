import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Caches compiled code between starts, which reduces the time for later imports from 0.1 s to 0.04 s.
 *
 * Node runs the cached code without further checks, and another user on the machine could create Node's default folder
 * first. So a separate folder is used, and nothing is cached if another user can write to that.
 */
export function cacheCompiledCode(): void {
  // The environment names a cache folder, which Node already uses.
  if (getCompileCacheDir() !== undefined) return;
  const user = process.getuid?.();
  // On Windows, the folder for temporary files belongs to the user.
  if (user === undefined) return void enableCompileCache();
  const folder = join(tmpdir(), `plantstore-compile-cache-${user}`);
  if (isOwnFolder(folder, user)) enableCompileCache(folder);
}

/** Returns whether only this user and root can write to a folder. Creates the folder if it is missing. */
export function isOwnFolder(path: string, user: number): boolean {
  try {
    if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
    const stats = lstatSync(path);
    return stats.isDirectory() && stats.uid === user && (stats.mode & writableByOthers) === 0;
  } catch {
    // The folder is inaccessible, or another process created it at the same time. Then the next start can use it.
    return false;
  }
}

const writableByOthers = 0o022;
