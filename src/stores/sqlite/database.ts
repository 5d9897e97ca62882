import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { type DurableStoreOptions, StoreOpenError } from "../contract/store-options.ts";
import { inChunks } from "../contract/plant-database.ts";
import {
  assertNotMoved,
  assertSingleName,
  assertFileExists,
  assertUsablePath,
  createPrivateFile,
  isClaimed,
} from "./file-names.ts";
import { repairLeftoverLog } from "./leftover-log.ts";
import { assertNotAside, assertUsable, type IdRange, migrate, type OnMigrated, versionOf } from "./migrate.ts";
import { storeErrorOf } from "./problem.ts";
import { lockPollMs, lockTimeoutMsDefault, retryWhileLocked } from "./transaction.ts";

// Maximum size of the write-ahead log after a checkpoint, in bytes. Twice the usual size of a log.
const walKeptBytes = 16 * 2 ** 20;

/** Options for a server's file. All values are cloneable, because the storage thread gets the options. */
export interface DatabaseOptions extends Pick<DurableStoreOptions, "deletionsKeptMs"> {
  readonly file: string;
  /** Timeout for another process's lock, in milliseconds. */
  readonly lockTimeoutMs?: number;
  /** Creates a missing store with these plants. An existing empty store stays empty. */
  readonly plantsWhenCreated?: IdRange;
  /** Whether to create a missing store, and migrate an older schema. Default false. */
  readonly migrates?: boolean;
}

interface OpenOptions extends DatabaseOptions {
  /** Whether a store that a move has set aside may be opened, to read or move it. Default false. */
  readonly isAside?: boolean;
}

/**
 * Opens a plant store's file for durable commits. Calls `onCheck` before the whole file is checked after a crash.
 *
 * @throws StoreOpenError that names the file and describes the problem
 */
export function openDatabase(options: OpenOptions, onMigrated?: OnMigrated, onCheck?: () => void): DatabaseSync {
  const creates = options.migrates === true || options.plantsWhenCreated !== undefined;
  return withUsablePath(options.file, (path) => {
    if (!creates) assertFileExists(path);
    assertSingleName(path);
    // Another connection of this process has repaired the log. A repair would release that connection's locks.
    if (existsSync(path) && !isClaimed(path)) {
      assertNotMoved(path, options.lockTimeoutMs);
      repairLeftoverLog(path, options.lockTimeoutMs, onCheck);
    }
    createPrivateFile(path);
    return connectFile(path, options, onMigrated);
  });
}

function connectFile(path: string, options: OpenOptions, onMigrated?: OnMigrated): DatabaseSync {
  const { migrates = false, plantsWhenCreated, lockTimeoutMs = lockTimeoutMsDefault } = options;
  // Without readBigInts, run() throws for a rowid above 2^53 after the row has been deleted.
  using opening = new DisposableStack();
  const db = opening.use(new DatabaseSync(path, { readBigInts: true, timeout: lockTimeoutMs }));
  assertFixedWal(db);
  const isNew = plantsWhenCreated !== undefined && versionOf(db).version === 0;
  if (migrates || isNew) migrate(db, { ...options, onMigrated });
  assertUsable(db);
  if (options.isAside !== true) assertNotAside(db);
  retryWhileLocked(() => makeDurable(db), lockTimeoutMs);
  // The log grows during a long read, such as an export. Without a size limit, the log would not shrink again. The busy
  // timeout is now short, because beginWrite() retries by itself.
  db.exec(`PRAGMA journal_size_limit = ${walKeptBytes}; PRAGMA busy_timeout = ${lockPollMs}`);
  opening.move();
  return db;
}

/** Checks a path and runs `work` with the absolute path. Any error becomes a `StoreOpenError` that names the file. */
function withUsablePath<Result>(file: string, work: (path: string) => Result): Result {
  // The path is absolute, so that names like ":memory:" and "file:x" are files.
  const path = resolve(file);
  try {
    assertUsablePath(path);
    return work(path);
  } catch (fault) {
    throw storeErrorOf(`cannot open ${file}`, fault);
  }
}

/** Opens a file without writing to the file or its folder, and runs `read`. @throws StoreOpenError naming the file */
export function readDatabaseFile<Result>(file: string, read: (db: DatabaseSync, path: string) => Result): Result {
  return withUsablePath(file, (path) => {
    assertFileExists(path);
    using db = new DatabaseSync(readOnlyUrl(path), { readOnly: true, readBigInts: true });
    assertFixedWal(db);
    return read(db, path);
  });
}

/**
 * Returns a URL with which SQLite reads a file without leaving a log and its index behind: an immutable URL, unless a log
 * or journal exists, because another process has the file open or has crashed. @throws if the file does not exist
 */
export function readOnlyUrl(path: string): URL {
  // SQLite puts the log next to the real file, even if the file was opened through a link.
  const realPath = realpathSync(path);
  const url = pathToFileURL(realPath);
  if (!existsSync(`${realPath}-wal`) && !existsSync(`${realPath}-journal`)) url.searchParams.set("immutable", "1");
  return url;
}

// The first patch of each minor version 3.x in which writing and copying the log at the same time does not lose commits
// (sqlite.org/wal.html#walresetbug). Later minor versions have the fix.
const fixedPatches: ReadonlyMap<number, number> = new Map([
  [44, 6],
  [50, 7],
  [51, 3],
]);

/** @throws StoreOpenError if SQLite, perhaps the system's, loses commits: before 3.51.3, 3.50.7 or 3.44.6 */
export function assertFixedWal(db: DatabaseSync): void {
  const version = String(db.prepare("SELECT sqlite_version() AS version").get()?.["version"]);
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  if (major > 3 || (major === 3 && (minor > 51 || patch >= (fixedPatches.get(minor) ?? Infinity)))) return;
  throw new StoreOpenError(
    `SQLite ${version}, included in this Node.js, can lose commits: ` +
      "use SQLite 3.51.3 or newer (as in Node.js 24.15), 3.50.7 or 3.44.6",
  );
}

/** Makes commits durable. @throws StoreOpenError if a setting did not change, which SQLite itself does not report */
export function makeDurable(db: DatabaseSync): void {
  // On macOS, fsync without fullfsync leaves data in the drive's cache. Other systems ignore fullfsync.
  db.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON",
  );
  const found = db.prepare("SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous").get();
  if (found?.["journal_mode"] !== "wal" || found["synchronous"] !== 2n) {
    throw new StoreOpenError("its file system does not support a write-ahead log, so commits would not be durable");
  }
}

/** Reads all plant ids in ascending order. All ids are from one snapshot, because one statement reads the ids. */
export function idsIn(db: DatabaseSync, table: "plants" | "moved_plants"): Generator<readonly bigint[]> {
  const ids = db.prepare(`SELECT id FROM ${table} ORDER BY id`);
  // Reads each row as an array, because creating an object would cost more than reading the row.
  ids.setReturnArrays(true);
  return inChunks(ids.iterate(), (row) => toBigInt(row[0]));
}

/** Returns the value of an integer column. Integers are read as bigint, so any other type is a bug. */
export function toBigInt(value: unknown): bigint {
  if (typeof value !== "bigint") throw new TypeError(`a column must be an integer, got ${String(value)}`);
  return value;
}
