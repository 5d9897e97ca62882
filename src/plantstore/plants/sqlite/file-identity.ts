import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../store-health.ts";
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
  text: `${logGone}; without it a restart may bring back plants whose deletion was acknowledged`,
  isTemporary: false,
  needsOperator: true,
};

// The next process that opens the file creates another one, and neither process sees the locks of the other.
const locksGone: StoreProblem = {
  text: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server",
  isTemporary: false,
};

/**
 * Returns a function that checks whether an open file, its write-ahead log and its -shm file are still the files of
 * these names, and returns what is wrong otherwise; it does not throw. Commits to a file that was moved, replaced or
 * deleted are lost with the next start, and so is whatever only the log contains.
 *
 * If the name of the log is free, the function first copies the content of the log, which is still open, into the file.
 *
 * @param lockTimeoutMs - how long to wait for other connections that still read older content
 * @throws when the file or its log does not exist to begin with
 */
export function watchFileIdentity(
  file: string,
  db: DatabaseSync,
  lockTimeoutMs: number = lockTimeoutMsDefault,
): () => StoreProblem | undefined {
  // SQLite opens the log at the first read.
  db.prepare("SELECT count(*) FROM sqlite_schema").get();
  const whereFile = watchName(resolve(file));
  // SQLite puts the log next to the real file, even when it was opened through a link.
  const realPath = db.location() ?? resolve(file);
  const whereLog = watchName(`${realPath}-wal`);
  const whereLocks = watchName(`${realPath}-shm`);
  return () => {
    if (whereFile() !== "in-place") return fileGone;
    const log = whereLog();
    if (log === "in-place") return whereLocks() === "in-place" ? undefined : locksGone;
    // Another log of this name belongs to another process, and two must not share the file.
    return log === "missing" && bringLogIntoFile(db, lockTimeoutMs) ? logSaved : logLost;
  };
}

/**
 * Runs batches only while the file is in place, and checks again before a commit is reported: a commit to a file that
 * was taken away meanwhile is not durable.
 */
export function onlyWhileSameFile(
  findPlaceProblem: () => StoreProblem | undefined,
  deleteBatch: (batch: DeleteBatch) => BatchResult,
): (batch: DeleteBatch) => BatchResult {
  return (batch) => {
    const before = findPlaceProblem();
    if (before !== undefined) return { kind: "nothing-done", problem: before, outcomes: [], otherEnds: [] };
    const result = deleteBatch(batch);
    const after = findPlaceProblem();
    return after === undefined ? result : { kind: "unknown", problem: after, outcomes: [], otherEnds: [] };
  };
}

function watchName(path: string): () => "in-place" | "missing" | "other" {
  const opened = statSync(path);
  return () => {
    try {
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      // No test can tell: an inode of that number elsewhere takes a copy of the whole file system, mounted in its place.
      return found.ino === opened.ino && found.dev === opened.dev ? "in-place" : "other";
    } catch {
      // The name no longer leads to the file: a folder is not readable, or a link is broken.
      return "other";
    }
  };
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
