import { type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../contract/store-health.ts";
import { failAll, type FileResult, type Row } from "./delete-batch.ts";
import { LogIntegrity } from "./log-integrity.ts";
import { lockTimeoutMsDefault } from "./transaction.ts";
import type { WalIndex } from "./wal-index.ts";

function forOperator(text: string): StoreProblem {
  return { text, isTemporary: false, needsOperator: true };
}

// A restarted server would use another file that now has the file's name, or an empty store.
const fileGone = forOperator("the file was moved, replaced or deleted");

const logMissing = "its write-ahead log was moved, replaced or deleted";
const checkpointedLogMissing: StoreProblem = {
  text: `${logMissing}; every acknowledged deletion is in the file`,
  isTemporary: false,
};
const uncheckpointedLogMissing = forOperator(`${logMissing}; a restart without it may undo acknowledged deletions`);

// The next process that opens the file would create another -shm file, and ignore this process's locks.
const locksMissing: StoreProblem = {
  text: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
  isTemporary: false,
};

const logDamaged = forOperator(
  "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions",
);

/**
 * Checks whether an open file, its write-ahead log and its -shm file still have their names, and whether the log is
 * complete. Otherwise, commits in the file or the log are lost at the next start. Writes by another program into the
 * file are not detected, because checkpoints of other processes also write into the file.
 */
export class FileIdentity {
  /** Returns the index of the write-ahead log. */
  readonly readIndex: () => WalIndex | undefined;
  /** Checks that the log can grow, see {@link LogIntegrity.checkSpace}. */
  readonly checkSpace: () => void;
  readonly #db: DatabaseSync;
  readonly #lockTimeoutMs: number;
  readonly #findFile: FindFile;
  readonly #findLog: FindFile;
  readonly #findLocks: FindFile;
  readonly #integrity: LogIntegrity;
  readonly #reader: DatabaseSync;

  /**
   * @param lockTimeoutMs - how long to wait for connections that still read older content, in milliseconds
   * @throws if the file or its log does not exist
   */
  constructor(file: string, db: DatabaseSync, lockTimeoutMs: number = lockTimeoutMsDefault) {
    this.#db = db;
    this.#lockTimeoutMs = lockTimeoutMs;
    // SQLite opens the log at the first read.
    db.exec("SELECT 1 FROM sqlite_schema");
    this.#findFile = prepareFindFile(resolve(file));
    // SQLite puts the log next to the real file, even if the file was opened through a link.
    const realPath = db.location() ?? resolve(file);
    this.#findLog = prepareFindFile(`${realPath}-wal`);
    this.#findLocks = prepareFindFile(`${realPath}-shm`);
    this.#integrity = new LogIntegrity(realPath);
    this.readIndex = this.#integrity.readIndex;
    this.checkSpace = () => this.#integrity.checkSpace();
    this.#reader = new DatabaseSync(realPath, { readOnly: true });
    this.#reader.exec("SELECT 1 FROM sqlite_schema");
  }

  /**
   * Returns the problem, if any. First copies a deleted or moved log, which the connection has open, into the file.
   *
   * @throws the system's error when the log cannot be read
   */
  findProblem(): StoreProblem | undefined {
    const index = this.#integrity.readIndex();
    if (typeof this.#findFile() === "string") return fileGone;
    const log = this.#findLog();
    // Another process may use the new log, and only one log may be copied into the file.
    if (log === "other") return uncheckpointedLogMissing;
    if (log === "missing")
      return checkpointLog(this.#db, this.#lockTimeoutMs) ? checkpointedLogMissing : uncheckpointedLogMissing;
    if (typeof this.#findLocks() === "string") return locksMissing;
    return this.#integrity.check(index, log.size) ? logDamaged : undefined;
  }

  /** Closes the connection. If another program has truncated the log, the log is not copied into the file. */
  close(): void {
    // The last connection to close copies the log into the file, unless the last connection is read-only.
    const { isDamaged } = this.#integrity;
    if (!isDamaged) this.#reader.close();
    this.#db.close();
    if (isDamaged) this.#reader.close();
    this.#integrity.close();
  }
}

/**
 * Runs batches only while {@link FileIdentity} finds no problem. Checks again before a commit is reported, because a
 * commit to a file that was removed during the batch is not durable.
 */
export function withIdentityChecks(
  identity: Pick<FileIdentity, "findProblem">,
  deleteBatch: (rows: readonly Row[]) => FileResult,
): (rows: readonly Row[]) => FileResult {
  return (rows) => {
    const before = identity.findProblem();
    if (before !== undefined) return failAll(rows, "unavailable", before);
    const result = deleteBatch(rows);
    const after = identity.findProblem();
    return after === undefined ? result : failAll(rows, "unknown", after);
  };
}

/** Returns the file's `stat` if the path still refers to the same file. */
type FindFile = () => Stats | "missing" | "other";

function prepareFindFile(path: string): FindFile {
  const opened = statSync(path);
  return () => {
    try {
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      // equivalent mutant: the same inode on another device requires a copy of the whole file system, mounted over it.
      return found.ino === opened.ino && found.dev === opened.dev ? found : "other";
    } catch {
      // The path no longer leads to the file, because a folder is not readable or a link is broken.
      return "other";
    }
  };
}

/** Copies the log into the file. Returns whether the file now durably contains every commit. */
function checkpointLog(db: DatabaseSync, lockTimeoutMs: number): boolean {
  try {
    db.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    // `busy` is 0 if the whole log was copied and synced (sqlite.org/c3ref/wal_checkpoint_v2.html).
    return db.prepare("PRAGMA wal_checkpoint(FULL)").get()?.["busy"] === 0n;
  } catch {
    return false;
  }
}
