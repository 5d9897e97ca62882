import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache, getCompileCacheDir } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Keeps compiled code between starts: 0.1 s becomes 0.04 s for what is imported afterwards.
 *
 * Node runs what such a folder says is the code of a file. The folder that it would choose may be made by anyone on the
 * machine before, so this one is used only if nobody but this user can write to it. Otherwise nothing is kept.
 */
export function keepCompiledCode(): void {
  // The environment has named a folder, which node uses already.
  if (getCompileCacheDir() !== undefined) return;
  const user = process.getuid?.();
  // On Windows the folder for temporary files is the user's own.
  if (user === undefined) return void enableCompileCache();
  const folder = join(tmpdir(), `plantstore-compile-cache-${user}`);
  if (isOwnFolder(folder, user)) enableCompileCache(folder);
}

/** Returns whether a folder, which is made if nothing is there, can be written to by nobody but this user and root. */
export function isOwnFolder(path: string, user: number): boolean {
  try {
    if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
    const found = lstatSync(path);
    return found.isDirectory() && found.uid === user && (found.mode & writableByOthers) === 0;
  } catch {
    // It cannot be made or looked at, or another process has just made it, and has it for the next start.
    return false;
  }
}

const writableByOthers = 0o022;
