/**
 * The thread that owns the file. A commit waits for the disk, and nothing else shall wait with it:
 * the thread that serves requests only sends batches here and reads their outcomes.
 */
import { availableParallelism } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreProblem } from "../health.ts";
import { deletionsKeptMsDefault, retentionIntervalMs } from "../retention.ts";
import { openDatabase } from "./database.ts";
import { type BatchResult, type DeleteBatch, prepareDeleteBatch } from "./delete-batch.ts";
import { Doorbell } from "./doorbell.ts";
import { onlyInPlace, watchPlace } from "./place.ts";
import { fileProblemOf } from "./problem.ts";
import { prepareDropOldDeletions } from "./retention.ts";
import { runInTransaction } from "./transaction.ts";
import type { Question, Reply, StorageThreadData } from "./worker-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this module is the storage thread of the SQLite store");

const reply = (message: Reply): void => port.postMessage(message);

/**
 * How long the thread stays awake after a deletion that came alone, in milliseconds: its caller, if it deletes one plant
 * after the other, is back after about 0.1. Not where this thread would take the only core from who writes the answer.
 */
const awakeMs = availableParallelism() > 1 ? 0.15 : 0;

const { options, doorbell }: StorageThreadData = workerData;
const work = prepareOrTell();
if (work !== undefined) serve(work, new Doorbell(doorbell), port);

/** What is prepared once the file is open. */
interface Work {
  readonly db: DatabaseSync;
  readonly deleteBatch: (batch: DeleteBatch) => BatchResult;
  readonly dropOldDeletions: () => number;
}

function prepareOrTell(): Work | undefined {
  try {
    const db = openDatabase(options);
    const deleteWherever = prepareDeleteBatch(db, options.lockTimeoutMs);
    const deleteBatch = onlyInPlace(watchPlace(options.file, db, options.lockTimeoutMs), deleteWherever);
    const dropOldDeletions = prepareDropping(db, options.deletionsKeptMs ?? deletionsKeptMsDefault);
    return { db, deleteBatch, dropOldDeletions };
  } catch (fault) {
    reply({ kind: "not-open", message: fault instanceof Error ? fault.message : String(fault) });
    return undefined;
  }
}

/** Answers one question after the other until it is told to close, and cleans up when nobody asks. */
function serve({ db, deleteBatch, dropOldDeletions }: Work, bell: Doorbell, questions: MessagePort): void {
  let nextDropMs = performance.now() + dropOldDeletions();
  let cameAlone = false;
  reply({ kind: "open" });
  while (db.isOpen) {
    const asleepMs = Math.max(0, nextDropMs - performance.now());
    const question = bell.nextQuestion(questions, asleepMs, cameAlone ? awakeMs : 0);
    cameAlone = question?.kind === "delete" && question.batch.ids.length === 1;
    if (question !== undefined) answer(question);
    else if (performance.now() >= nextDropMs) nextDropMs = performance.now() + dropOldDeletions();
  }

  function answer(question: Question): void {
    switch (question.kind) {
      case "delete":
        return reply({ kind: "deleted", result: deleteBatch(question.batch) });
      case "try-to-write":
        return reply({ kind: "tried", problem: tryToWrite(db) });
      case "close":
        return db.close();
    }
  }
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

/** Keeps the deletion record from growing for ever: drops a slice, and says in how many milliseconds the next is due. */
function prepareDropping(db: DatabaseSync, keptMs: number): () => number {
  const dropSlice = prepareDropOldDeletions(db);
  return () => {
    try {
      return dropSlice(new Date(Date.now() - keptMs)) ? 0 : retentionIntervalMs;
    } catch {
      // What is wrong with the file shows in the next batch, which has somebody to tell it to.
      return retentionIntervalMs;
    }
  };
}
