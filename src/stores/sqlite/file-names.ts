import { closeSync, existsSync, openSync, readFileSync, readSync, realpathSync, statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { elapsedMsSince, type OnUpkeep } from "../contract/upkeep.ts";
import { mountPointOf } from "./mount-points.ts";
import { isLocked } from "./problem.ts";
import { retryWhileLocked } from "./transaction.ts";

/**
 * Returns the problem if an existing file may have a second name, otherwise `undefined`. SQLite names the log after the
 * name by which it opened the file. With two names, two servers with separate logs could delete the same plants, and a
 * restart with the other name would restore deleted plants.
 *
 * Symbolic links are allowed, because SQLite resolves links. All names of a folder lead to the same log. The file is
 * not opened, because closing it would release this process's locks. Device numbers are not compared, because overlay
 * file systems report different numbers for files in one folder.
 */
export function secondNameOf(path: string): string | undefined {
  const realPath = realpathSync(path);
  const mountPoint = mountPointOf(readMountInfo(), realPath);
  if (mountPoint === realPath) {
    return (
      "the file itself is a mount point, so its write-ahead log is not on the mounted volume: " +
      "mount the folder, not the file (in Kubernetes, no subPath that is a file)"
    );
  }
  const { nlink, ino } = statSync(realPath, { bigint: true });
  if (nlink <= 1n) return undefined;
  const folder = process.platform === "linux" ? mountPoint : parse(realPath).root;
  return (
    `the file has ${nlink} names (hard links), each with its own write-ahead log: ` +
    `find them with "find ${folder} -xdev -inum ${ino}", remove the others, then start; ` +
    "keep the name by which the server ran last, never the name of a backup, which may have an old -wal"
  );
}

/** @throws StoreOpenError with the problem of {@link secondNameOf}, without the path */
export function assertSingleName(path: string): void {
  const problem = secondNameOf(path);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

/**
 * Checks that no process has a file open by an earlier name. The log with the latest deletions is next to that name.
 *
 * @param path - an existing file, which this process must not have open
 * @throws StoreOpenError if a process still has the file open after `lockTimeoutMs`
 */
export function assertNotMoved(path: string, lockTimeoutMs?: number): void {
  const log = `${realpathSync(path)}-wal`;
  if (existsSync(log)) return;
  using db = new DatabaseSync(path);
  // In exclusive mode, the first read fails if another connection has the file open.
  const read = (): unknown =>
    existsSync(log) || db.exec("PRAGMA locking_mode = EXCLUSIVE; SELECT 1 FROM sqlite_schema");
  try {
    retryWhileLocked(read, lockTimeoutMs);
  } catch (cause) {
    if (!isLocked(cause) || !usesLog(path)) throw cause;
    throw new StoreOpenError("another process has opened the file by an earlier name; move the file back", { cause });
  }
}

// Offset of the file format write version (sqlite.org/fileformat.html#the_database_header). WAL mode has version 2.
const writeVersionAt = 18;
const logVersion = 2;

/**
 * Returns whether a file is in WAL mode, in which SQLite opens the file. This process must not have the file open,
 * because closing it releases the process's locks.
 */
export function usesLog(path: string): boolean {
  const version = new Uint8Array(1);
  using files = new DisposableStack();
  readSync(files.adopt(openSync(path, "r"), closeSync), version, 0, version.length, writeVersionAt);
  return version[0] === logVersion;
}

/** Returns a function that checks whether an open file has a second name. Reports when the name appears or is gone. */
export function prepareNameCheck(file: string, onUpkeep: OnUpkeep): () => boolean {
  const path = resolve(file);
  let foundMs: number | undefined;
  return () => {
    let problem: string | undefined;
    try {
      problem = secondNameOf(path);
    } catch {
      // Ignores a file that was moved or deleted, because the store reports that problem.
    }
    if (problem !== undefined && foundMs === undefined) {
      foundMs = performance.now();
      onUpkeep({ kind: "second-name-found", problem });
    } else if (problem === undefined && foundMs !== undefined) {
      onUpkeep({ kind: "second-name-gone", lastedMs: elapsedMsSince(foundMs) });
      foundMs = undefined;
    }
    return problem !== undefined;
  };
}

/** Returns the mounts of this process. Returns an empty string on systems where a file cannot be a mount point. */
function readMountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}
