import { type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../store-health.ts";
import { type ChangeInPlace, ChangesInPlace } from "./changes-in-place.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import { lockTimeoutMsDefault } from "./transaction.ts";

// A restart would serve what is at that place now, or an empty store.
const fileGone: StoreProblem = {
  text: "the file was moved, replaced or deleted",
  isTemporary: false,
  needsOperator: true,
};

const logGone = "its write-ahead log was moved, replaced or deleted";
const logSaved: StoreProblem = { text: `${logGone}; every acknowledged deletion is in the file`, isTemporary: false };
const logLost: StoreProblem = {
  text: `${logGone}; a restart without it may undo acknowledged deletions`,
  isTemporary: false,
  needsOperator: true,
};

// The next process that opens the file creates another one, and neither process sees the locks of the other.
const locksGone: StoreProblem = {
  text: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
  isTemporary: false,
};

const changedInPlace: Readonly<Record<ChangeInPlace, StoreProblem>> = {
  "file-written": {
    text: "another program, such as cp, wrote to the file; run `plantstore restore` with a backup",
    isTemporary: false,
    needsOperator: true,
  },
  "log-cut": {
    text: "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions",
    isTemporary: false,
    needsOperator: true,
  },
};

/**
 * Checks whether an open file, its write-ahead log and its -shm file are still the files of these names, and have been
 * changed by SQLite alone. Commits to a file that was moved, replaced or deleted are lost with the next start, and so is
 * whatever only the log contains. Commits to a file or log that another program has changed may damage it.
 */
export class FileIdentity {
  readonly #db: DatabaseSync;
  readonly #lockTimeoutMs: number;
  readonly #file: Place;
  readonly #log: Place;
  readonly #locks: Place;
  readonly #changes: ChangesInPlace;
  /** A second connection, which cannot write. */
  readonly #reader: DatabaseSync;

  /**
   * @param lockTimeoutMs - how long to wait for other connections that still read older content
   * @throws when the file or its log does not exist to begin with
   */
  constructor(file: string, db: DatabaseSync, lockTimeoutMs: number = lockTimeoutMsDefault) {
    this.#db = db;
    this.#lockTimeoutMs = lockTimeoutMs;
    // SQLite opens the log at the first read.
    db.exec("SELECT 1 FROM sqlite_schema");
    this.#file = new Place(resolve(file));
    // SQLite puts the log next to the real file, even when it was opened through a link.
    const realPath = db.location() ?? resolve(file);
    this.#log = new Place(`${realPath}-wal`);
    this.#locks = new Place(`${realPath}-shm`);
    this.#changes = new ChangesInPlace(realPath, () => statSync(realPath));
    // The index of a log that was left says that a checkpoint is running, until there is one.
    if (this.#changes.mayBeCopying) db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    this.#reader = new DatabaseSync(realPath, { readOnly: true });
    this.#reader.exec("SELECT 1 FROM sqlite_schema");
  }

  /**
   * Returns what is wrong. If the name of the log is free, the content of the log, which is still open, is first copied
   * into the file.
   *
   * @throws the error of the system when the log cannot be read
   */
  findProblem(): StoreProblem | undefined {
    const file = this.#file.find();
    if (typeof file === "string") return fileGone;
    const log = this.#log.find();
    // Another log of this name belongs to another process, and two must not share the file.
    if (log === "other") return logLost;
    if (log === "missing") return bringLogIntoFile(this.#db, this.#lockTimeoutMs) ? logSaved : logLost;
    if (typeof this.#locks.find() === "string") return locksGone;
    const change = this.#changes.find(file, log.size);
    return change && changedInPlace[change];
  }

  /** Closes the connection. If the file or its log was changed in place, the log is not copied into the file any more. */
  close(): void {
    // The last connection that closes copies the log, unless it cannot write.
    const isChanged = this.#changes.found !== undefined;
    if (!isChanged) this.#reader.close();
    this.#db.close();
    if (isChanged) this.#reader.close();
    this.#changes.close();
  }
}

/**
 * Runs batches only while the file is in place, and checks again before a commit is reported: a commit to a file that
 * was taken away meanwhile is not durable.
 */
export function onlyWhileSameFile(
  identity: Pick<FileIdentity, "findProblem">,
  deleteBatch: (batch: DeleteBatch) => BatchResult,
): (batch: DeleteBatch) => BatchResult {
  return (batch) => {
    const before = identity.findProblem();
    if (before !== undefined) return { kind: "nothing-done", problem: before, outcomes: [], otherEnds: [] };
    const result = deleteBatch(batch);
    const after = identity.findProblem();
    return after === undefined ? result : { kind: "unknown", problem: after, outcomes: [], otherEnds: [] };
  };
}

/** A name in a folder, and the file that was there. */
class Place {
  readonly #path: string;
  readonly #opened: Stats;

  constructor(path: string) {
    this.#path = path;
    this.#opened = statSync(path);
  }

  /** Returns the `stat` of the file if it is still there. */
  find(): Stats | "missing" | "other" {
    try {
      const found = statSync(this.#path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      // No test can tell: an inode of that number elsewhere takes a copy of the whole file system, mounted in its place.
      return found.ino === this.#opened.ino && found.dev === this.#opened.dev ? found : "other";
    } catch {
      // The name no longer leads to the file: a folder is not readable, or a link is broken.
      return "other";
    }
  }
}

/** Copies the log into the file, and returns whether the file now durably contains everything that was committed. */
function bringLogIntoFile(db: DatabaseSync, lockTimeoutMs: number): boolean {
  try {
    // Waits for other readers and writers.
    db.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    // Not busy, it has copied and synced the whole log (sqlite.org/c3ref/wal_checkpoint_v2.html).
    return db.prepare("PRAGMA wal_checkpoint(FULL)").get()?.["busy"] === 0n;
  } catch {
    return false;
  }
}
