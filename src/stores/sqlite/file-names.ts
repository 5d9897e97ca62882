import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, parse, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createAdvice } from "../contract/schema-version.ts";
import { StoreOpenError } from "../contract/store-options.ts";
import { isLocked } from "./problem.ts";
import { retryWhileLocked } from "./transaction.ts";

/**
 * Returns the problem if a file may have a second name. Returns `undefined` if the file does not exist. SQLite names the
 * log after the name by which it opened the file. So two servers with separate logs could delete the same plants, and a
 * restart with the other name would restore deleted plants. Symbolic links are allowed, because SQLite resolves links.
 * The file is not opened, because closing it would release this process's locks. Device numbers are not compared, because
 * overlay file systems report different numbers for files in one folder.
 *
 * @throws the system's error when the file cannot be checked
 */
export function secondNameOf(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
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

/** @throws StoreOpenError if a file may have a second name, or the system's error when the file cannot be checked */
export function assertSingleName(path: string): void {
  const problem = secondNameOf(path);
  if (problem !== undefined) throw new StoreOpenError(problem);
}

/**
 * Checks that no process has a file open by an earlier name, next to which the log with the latest deletions is. This
 * process must not have the file open. @throws StoreOpenError if another has it open after `lockTimeoutMs`
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

/**
 * Returns whether a file is in WAL mode, by the write version in its header (sqlite.org/fileformat.html). This process
 * must hold no lock on the file, because closing it releases the process's locks.
 */
export function usesLog(path: string): boolean {
  const header = new Uint8Array(19);
  using files = new DisposableStack();
  readSync(files.adopt(openSync(path, "r"), closeSync), header);
  return header[18] === 2;
}

/** Returns the mounts of this process, or an empty string if they cannot be read, as on other systems than Linux. */
function readMountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}

/** Returns the mount point for a path without symbolic links, from /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export function mountPointOf(mountInfo: string, realPath: string): string {
  let found = "/";
  for (const line of mountInfo.split("\n")) {
    // The fifth field is the mount point. The kernel encodes special characters as a backslash and three octal digits.
    const mountPoint = (line.split(" ", 5)[4] ?? "").replace(/\\([0-3][0-7]{2})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    );
    const isParent = realPath === mountPoint || realPath.startsWith(`${mountPoint}/`);
    if (isParent && mountPoint.length > found.length) found = mountPoint;
  }
  return found;
}

/** @throws StoreOpenError if an absolute path cannot be used for a store. SQLite's error would lack the reason */
export function assertUsablePath(path: string): void {
  const folder = dirname(path);
  const folderStat = statSync(folder, { throwIfNoEntry: false });
  if (folderStat === undefined) throw new StoreOpenError(`the directory ${folder} does not exist`);
  if (!folderStat.isDirectory()) throw new StoreOpenError(`${folder} is not a directory`);
  // SQLite creates journal files in the database's directory.
  if (isAccessDenied(folder)) throw new StoreOpenError(`the directory ${folder} is not writable`);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) throw new StoreOpenError("the path is a directory");
  if (stat !== undefined && isAccessDenied(path)) throw new StoreOpenError("the file is not writable");
  // The target of a symbolic link may be on a volume that is not mounted yet, and must not be created elsewhere.
  if (stat !== undefined || lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new StoreOpenError(`the path is a symbolic link to ${readlinkSync(path)}, which does not exist`);
}

/** @throws StoreOpenError if a path has no file, so that a mistyped path does not become an empty store */
export function assertFileExists(path: string): void {
  if (existsSync(path)) return;
  throw new StoreOpenError(`file not found in ${dirname(path)}: ${createAdvice}`);
}

/**
 * Creates a missing file that only its owner may access, because it contains subjects and keys. SQLite gives the log the
 * same mode. Does not open an existing file, because closing the file would release this process's locks on the file.
 */
export function createPrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch {
    // Ignored: another process has created the file, or SQLite will report why the file cannot be opened.
  }
}

function isAccessDenied(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/** The real paths of the files that stores and databases of this process have open. */
const claims = new Set<{ readonly path: string }>();

/**
 * Marks a file as open in this process until the result is disposed of. Another repair of its log would close a
 * descriptor of the -shm file, which releases all locks of the process (POSIX fcntl), so that others could write during
 * a commit.
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
