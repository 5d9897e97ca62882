import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { StoreProblem } from "../health.ts";
import type { BatchResult, DeleteBatch } from "./delete-batch.ts";
import { lockPollMs, lockTimeoutMsDefault } from "./transaction.ts";

const fileGone: StoreProblem = { text: "the file was moved, replaced or deleted", passing: false };

const logGone = "its write-ahead log was moved, replaced or deleted";
const logSaved: StoreProblem = { text: `${logGone}; every acknowledged deletion is in the file`, passing: false };
const logLost: StoreProblem = {
  text: `${logGone}; without it a restart may bring back plants whose deletion was acknowledged`,
  passing: false,
};

/**
 * Returns a function that says whether an open file and its write-ahead log are still those of their names, and
 * otherwise what is wrong; it does not throw. What is committed to a file that somebody has moved, replaced or deleted
 * meanwhile is gone with the next start, and so is what only the log holds.
 *
 * Where the log's name is free, the function brings what the log holds into the file, from the log that is still open.
 *
 * @param lockTimeoutMs - how long it waits for others who still read what was there before
 * @throws when the file or its log is not there to begin with
 */
export function watchPlace(
  file: string,
  db: DatabaseSync,
  lockTimeoutMs: number = lockTimeoutMsDefault,
): () => StoreProblem | undefined {
  // SQLite opens the log when it reads for the first time.
  db.prepare("SELECT count(*) FROM sqlite_schema").get();
  const whereFile = watchName(resolve(file));
  // SQLite puts the log beside the file itself, also when it was opened by a link.
  const whereLog = watchName(`${db.location() ?? resolve(file)}-wal`);
  return () => {
    if (whereFile() !== "in-place") return fileGone;
    const log = whereLog();
    if (log === "in-place") return undefined;
    // Another log under this name is another process's, and the file is not for two of them.
    return log === "missing" && bringLogIntoFile(db, lockTimeoutMs) ? logSaved : logLost;
  };
}

/**
 * Runs batches only while the file is in its place, and asks again before anybody is told of a commit: a commit to a
 * file that was taken away meanwhile is not durable.
 */
export function onlyInPlace(
  findPlaceProblem: () => StoreProblem | undefined,
  deleteBatch: (batch: DeleteBatch) => BatchResult,
): (batch: DeleteBatch) => BatchResult {
  return (batch) => {
    const before = findPlaceProblem();
    if (before !== undefined) return { kind: "nothing-done", problem: before, outcomes: [], kept: [] };
    const result = deleteBatch(batch);
    const after = findPlaceProblem();
    return after === undefined ? result : { kind: "unknown", problem: after, outcomes: [], kept: [] };
  };
}

function watchName(path: string): () => "in-place" | "missing" | "other" {
  const opened = statSync(path);
  return () => {
    try {
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return "missing";
      return found.ino === opened.ino && found.dev === opened.dev ? "in-place" : "other";
    } catch {
      // Nobody who starts from this name would come to the file: a folder on the way is closed, a link leads nowhere.
      return "other";
    }
  };
}

/** Whether all that was committed is in the file afterwards, durably. */
function bringLogIntoFile(db: DatabaseSync, lockTimeoutMs: number): boolean {
  try {
    // Waits for others to end what they are reading or writing.
    db.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    const done = db.prepare("PRAGMA wal_checkpoint(FULL)").get();
    db.exec(`PRAGMA busy_timeout = ${lockPollMs}`);
    return done?.["busy"] === 0n && done["log"] === done["checkpointed"];
  } catch {
    return false;
  }
}
