import { type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../store-health.ts";
import { type ExternalChange, ExternalChanges } from "./external-changes.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import { lockTimeoutMsDefault } from "./transaction.ts";

function forOperator(text: string): StoreProblem {
  return { text, isTemporary: false, needsOperator: true };
}

// After a restart, the server would use the file that has this name now, or an empty store.
const fileGone = forOperator("the file was moved, replaced or deleted");

const logMissing = "its write-ahead log was moved, replaced or deleted";
const checkpointedLogMissing: StoreProblem = {
  text: `${logMissing}; every acknowledged deletion is in the file`,
  isTemporary: false,
};
const uncheckpointedLogMissing = forOperator(`${logMissing}; a restart without it may undo acknowledged deletions`);

// The next process that opens the file creates another -shm file, so that the processes do not see each other's locks.
const locksMissing: StoreProblem = {
  text: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
  isTemporary: false,
};

const externalChangeProblems: Readonly<Record<ExternalChange, StoreProblem>> = {
  "file-written": forOperator('another program, such as cp, wrote to the file; run "plantstore restore" with a backup'),
  "log-cut": forOperator("its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions"),
};

/**
 * Checks whether an open file, its write-ahead log and its -shm file are still the files with these names, and were
 * changed only by SQLite. If the file was moved, replaced or deleted, commits to it are lost after the next start; if
 * the log was, everything that is only in the log is lost. Commits to a file or log that another program has changed
 * may damage it.
 */
export class FileIdentity {
  readonly #db: DatabaseSync;
  readonly #lockTimeoutMs: number;
  readonly #file: NamedFile;
  readonly #log: NamedFile;
  readonly #locks: NamedFile;
  readonly #changes: ExternalChanges;
  /** A second connection, which cannot write. */
  readonly #reader: DatabaseSync;

  /**
   * @param lockTimeoutMs - how long to wait for other connections that still read older content
   * @throws when the file or its log does not exist
   */
  constructor(file: string, db: DatabaseSync, lockTimeoutMs: number = lockTimeoutMsDefault) {
    this.#db = db;
    this.#lockTimeoutMs = lockTimeoutMs;
    // SQLite opens the log at the first read.
    db.exec("SELECT 1 FROM sqlite_schema");
    endCheckpoint(db);
    this.#file = new NamedFile(resolve(file));
    // SQLite puts the log next to the real file, even when it was opened through a link.
    const realPath = db.location() ?? resolve(file);
    this.#log = new NamedFile(`${realPath}-wal`);
    this.#locks = new NamedFile(`${realPath}-shm`);
    this.#changes = new ExternalChanges(realPath);
    this.#reader = new DatabaseSync(realPath, { readOnly: true });
    this.#reader.exec("SELECT 1 FROM sqlite_schema");
  }

  /**
   * Returns the problem, if any. If the log was deleted or moved, its content is first copied into the file, because
   * the connection still has it open.
   *
   * @throws the error of the system when the log cannot be read
   */
  findProblem(): StoreProblem | undefined {
    const index = this.#changes.readIndex();
    const file = this.#file.find();
    if (typeof file === "string") return fileGone;
    const log = this.#log.find();
    // If there is another log with this name, another process is using it, and two logs must not be copied into one
    // file.
    if (log === "other") return uncheckpointedLogMissing;
    if (log === "missing")
      return checkpointLog(this.#db, this.#lockTimeoutMs) ? checkpointedLogMissing : uncheckpointedLogMissing;
    if (typeof this.#locks.find() === "string") return locksMissing;
    const change = this.#changes.find(index, file, log.size);
    return change && externalChangeProblems[change];
  }

  /** Closes the connection. If another program has changed the file or its log, the log is not copied into the file. */
  close(): void {
    // The connection that is closed last copies the log into the file, unless it is read-only.
    const isChanged = this.#changes.found !== undefined;
    if (!isChanged) this.#reader.close();
    this.#db.close();
    if (isChanged) this.#reader.close();
    this.#changes.close();
  }
}

/**
 * Runs batches only while the file is unchanged, and checks again before a commit is reported: a commit to a file that
 * was removed meanwhile is not durable.
 */
export function onlyWhileSameFile(
  identity: Pick<FileIdentity, "findProblem">,
  deleteBatch: (batch: DeleteBatch) => BatchResult,
): (batch: DeleteBatch) => BatchResult {
  return (batch) => {
    const before = identity.findProblem();
    if (before !== undefined) return { kind: "not-committed", problem: before, outcomes: [] };
    const result = deleteBatch(batch);
    const after = identity.findProblem();
    return after === undefined ? result : { kind: "unknown", problem: after, outcomes: [] };
  };
}

/** A path, and the file that it referred to when it was opened. */
class NamedFile {
  readonly #path: string;
  readonly #opened: Stats;

  constructor(path: string) {
    this.#path = path;
    this.#opened = statSync(path);
  }

  /** Returns the `stat` of the file if the path still refers to it. */
  find(): Stats | "missing" | "other" {
    try {
      const found = statSync(this.#path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      // equivalent mutant: the same inode on another device requires a copy of the whole file system, mounted over it.
      return found.ino === this.#opened.ino && found.dev === this.#opened.dev ? found : "other";
    } catch {
      // The path no longer leads to the file: a folder is not readable, or a link is broken.
      return "other";
    }
  }
}

/**
 * Checkpoints once. After a crash, the index may indicate a running checkpoint until the next one, and changes to the
 * file would not be detected.
 */
function endCheckpoint(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
  } catch {
    // The disk is full, for example. The store opens, and its next write reports the problem.
  }
}

/** Copies the log into the file, and returns whether the file now durably contains everything that was committed. */
function checkpointLog(db: DatabaseSync, lockTimeoutMs: number): boolean {
  try {
    // The timeout for other readers and writers.
    db.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    // If the result is not busy, the whole log was copied and synced (sqlite.org/c3ref/wal_checkpoint_v2.html).
    return db.prepare("PRAGMA wal_checkpoint(FULL)").get()?.["busy"] === 0n;
  } catch {
    return false;
  }
}
