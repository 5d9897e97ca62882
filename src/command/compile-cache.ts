import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Caches compiled code between starts. The cache reduces the time for later imports from 0.1 s to 0.04 s.
 *
 * Node runs cached code without further checks, and another user on the machine could create Node's default folder
 * first. So the cache is in a separate folder. If another user can write to the separate folder, nothing is cached.
 */
export function cacheCompiledCode(): void {
  // If the environment names a cache folder, Node already uses that folder.
  if (getCompileCacheDir() !== undefined) return;
  const user = process.getuid?.();
  // On Windows, the folder for temporary files belongs to the user.
  if (user === undefined) return void enableCompileCache();
  const folder = join(tmpdir(), `plantstore-compile-cache-${user}`);
  if (isOwnFolder(folder, user)) enableCompileCache(folder);
}

/** Returns whether only this user and root can write to a folder. Creates a missing folder. */
export function isOwnFolder(path: string, user: number): boolean {
  try {
    if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
    const stats = lstatSync(path);
    return stats.isDirectory() && stats.uid === user && (stats.mode & 0o022) === 0;
  } catch {
    // The folder is inaccessible, or another process created the folder at the same time. The next start can retry.
    return false;
  }
}
