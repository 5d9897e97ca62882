/**
 * The thread that owns the file. A commit waits for the disk, and nothing else shall wait with it:
 * the thread that serves requests only sends batches here and reads their outcomes.
 */
import type { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { StoreProblem } from "../health.ts";
import { deletionsKeptMsDefault, retentionIntervalMs } from "../retention.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { prepareDeleteBatch } from "./delete-batch.ts";
import { fileProblemOf } from "./problem.ts";
import { prepareDropOldDeletions } from "./retention.ts";
import { runInTransaction } from "./transaction.ts";
import type { Question, Reply } from "./worker-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this module is the storage thread of the SQLite store");

const reply = (message: Reply): void => port.postMessage(message);

try {
  const options: DatabaseOptions = workerData;
  const db = openDatabase(options);
  const deleteBatch = prepareDeleteBatch(db, options.lockTimeoutMs);
  port.on("message", (question: Question) => {
    switch (question.kind) {
      case "delete":
        return reply({ kind: "deleted", result: deleteBatch(question.batch) });
      case "try-to-write":
        return reply({ kind: "tried", problem: tryToWrite(db) });
      case "close":
        db.close();
        // Nothing is left to listen to, so the thread ends.
        return port.close();
    }
  });
  dropOldDeletions(db, options.deletionsKeptMs ?? deletionsKeptMsDefault);
  reply({ kind: "open" });
} catch (fault) {
  reply({ kind: "not-open", message: fault instanceof Error ? fault.message : String(fault) });
}

/** Commits something that changes nothing, to learn whether commits work again. */
function tryToWrite(db: DatabaseSync): StoreProblem | undefined {
  try {
    runInTransaction(db, () => {
      const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
      db.exec(`PRAGMA user_version = ${String(version)}`);
    });
    return undefined;
  } catch (fault) {
    return fileProblemOf(fault);
  }
}

/** Keeps the deletion record from growing for ever, slice by slice between the batches. */
function dropOldDeletions(db: DatabaseSync, keptMs: number): void {
  const dropSlice = prepareDropOldDeletions(db);
  const drop = (): void => {
    let isMore = false;
    try {
      isMore = dropSlice(new Date(Date.now() - keptMs));
    } catch {
      // What is wrong with the file shows in the next batch, which has somebody to tell it to.
    }
    setTimeout(drop, isMore ? 0 : retentionIntervalMs).unref();
  };
  drop();
}
