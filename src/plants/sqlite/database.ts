import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreOpenError } from "../errors.ts";
import { type IdRange, migrate } from "./migrate.ts";
import { fileProblemOf } from "./problem.ts";
import { lockPollMs, lockTimeoutMsDefault } from "./transaction.ts";

// Bytes of the write-ahead log that are left to be overwritten: twice what it comes to when nobody reads for long.
const walKeptBytes = 16 * 2 ** 20;

/** Which file to open, and how. A plain record: it is sent to the storage thread. */
export interface DatabaseOptions {
  readonly file: string;
  /** The longest wait for another process's lock. Default {@link lockTimeoutMsDefault}. */
  readonly lockTimeoutMs?: number;
  /** Plants to put into a file that is created by this call. A store that became empty stays empty. */
  readonly plantsWhenCreated?: IdRange;
  /** How long deletion records are kept, in milliseconds. Default 90 days, an hour at least. */
  readonly deletionsKeptMs?: number;
}

/**
 * Opens a plant store's file for reading and writing, creates it where there is none and brings its
 * schema up to date. What is committed on this connection is on disk.
 *
 * @throws StoreOpenError naming the file and what is wrong with it
 */
export function openDatabase(options: DatabaseOptions): DatabaseSync {
  // Absolute, so that a file called ":memory:" or "file:x" is a file.
  const path = resolve(options.file);
  let db: DatabaseSync | undefined;
  try {
    const placeProblem = placeProblemOf(path);
    if (placeProblem !== undefined) throw new StoreOpenError(placeProblem);
    // A rowid above 2^53 otherwise makes run() throw after it has deleted the row.
    db = new DatabaseSync(path, { readBigInts: true, timeout: options.lockTimeoutMs ?? lockTimeoutMsDefault });
    migrate(db, options.plantsWhenCreated, options.lockTimeoutMs);
    makeDurable(db);
    // Once a long read beside it, such as an export, has let the log grow, it would keep its size for good.
    db.exec(`PRAGMA journal_size_limit = ${walKeptBytes}`);
    // From here on writers wait by themselves, see beginWrite.
    db.exec(`PRAGMA busy_timeout = ${lockPollMs}`);
    return db;
  } catch (fault) {
    db?.close();
    const text = fault instanceof StoreOpenError ? fault.message : fileProblemOf(fault).text;
    throw new StoreOpenError(`cannot open ${options.file}: ${text}`, { cause: fault });
  }
}

/**
 * Opens a plant store's file like {@link openDatabase}, and creates nothing.
 *
 * @throws StoreOpenError also when there is no such file
 */
export function openExistingDatabase(file: string): DatabaseSync {
  if (!existsSync(file)) throw new StoreOpenError(`cannot open ${file}: there is no such file`);
  return openDatabase({ file });
}

// SQLite says "unable to open database file" to all of these.
function placeProblemOf(path: string): string | undefined {
  const folder = dirname(path);
  const folderStat = statSync(folder, { throwIfNoEntry: false });
  if (folderStat === undefined) return `the folder ${folder} does not exist`;
  if (!folderStat.isDirectory()) return `${folder} is not a folder`;
  // The journal files lie beside the database.
  if (deniedTo(folder)) return `the folder ${folder} cannot be written`;
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return "it is a folder";
  return stat !== undefined && deniedTo(path) ? "the file cannot be written" : undefined;
}

function deniedTo(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/**
 * Makes a commit mean "on disk". Both settings are read back: SQLite keeps the old journal mode
 * without an error where the new one is not possible.
 */
function makeDurable(db: DatabaseSync): void {
  // fullfsync: on macOS fsync alone leaves the data in the drive's cache. Elsewhere it changes nothing.
  db.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON",
  );
  const journalMode = db.prepare("PRAGMA journal_mode").get()?.["journal_mode"];
  const synchronous = db.prepare("PRAGMA synchronous").get()?.["synchronous"];
  if (journalMode !== "wal" || synchronous !== 2n) {
    throw new StoreOpenError("its file system cannot keep a write-ahead log, so commits would not be durable");
  }
}
