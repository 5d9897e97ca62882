/**
 * The thread that owns the file. A commit waits for the disk, and nothing else should wait with it: the thread that
 * serves requests only sends batches here and receives their outcomes.
 */
import { availableParallelism } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreProblem } from "../store-health.ts";
import { StoreOpenError } from "../store-open-error.ts";
import { deletionsKeptMsDefault, retentionIntervalMs } from "../retention.ts";
import { lastedSince, type Upkeep } from "../upkeep.ts";
import { Alertness } from "./alertness.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { DropPace } from "./drop-pace.ts";
import { type BatchResult, type DeleteBatch, prepareDeleteBatch } from "./delete-batch.ts";
import { ThreadWakeUp } from "./thread-wake-up.ts";
import { FileIdentity, onlyWhileSameFile } from "./file-identity.ts";
import { demandUsable } from "./migrate.ts";
import { fileProblemOf } from "./problem.ts";
import { prepareRetention } from "./retention.ts";
import { runInTransaction } from "./transaction.ts";
import type { Question, Reply } from "./storage-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this module must run in a worker thread");

const reply = (message: Reply<unknown>): void => port.postMessage(message);

/**
 * How long the thread stays awake after a deletion that came alone and soon, in milliseconds: a caller that deletes one
 * plant after another is back after about 0.1. Zero on a single core, where the thread would keep the response from
 * being written.
 */
const awakeMsMax = availableParallelism() > 1 ? 0.15 : 0;

// The memory of the process's own.
const wakeUp = new ThreadWakeUp(workerData);
const first: Question<StorageWork> | undefined = wakeUp.nextQuestion(port, Infinity)?.message;
if (first?.kind !== "open") throw new Error(`the first question must be "open", got ${JSON.stringify(first?.kind)}`);
const work = prepareOrReport(first.options);
if (work !== undefined) serve(work, port);

/** What the thread does for the store, by the kind of the question. */
export interface StorageWork {
  /** Commits a batch. */
  readonly deleteBatch: (batch: DeleteBatch) => BatchResult;
  /** Finds out whether the file can be written. */
  readonly tryToWrite: () => StoreProblem | undefined;
}

/** The functions that are prepared once the file is open. */
interface Work extends StorageWork {
  readonly db: DatabaseSync;
  readonly identity: FileIdentity;
  readonly dropOldDeletions: (nowMs: number) => number;
}

function prepareOrReport(options: DatabaseOptions): Work | undefined {
  try {
    const onUpkeep = (upkeep: Upkeep): void => reply({ kind: "upkeep", upkeep });
    const begunMs = performance.now();
    const db = openDatabase(
      options,
      (from, to) => onUpkeep({ kind: "migrated", from, to, lastedMs: lastedSince(begunMs) }),
      () => reply({ kind: "checking" }),
    );
    const runBatch = prepareDeleteBatch(db, options.lockTimeoutMs);
    const identity = new FileIdentity(options.file, db, options.lockTimeoutMs);
    const deleteBatch = onlyWhileSameFile(identity, runBatch);
    const dropOldDeletions = prepareRetention(db, options.deletionsKeptMs ?? deletionsKeptMsDefault, onUpkeep);
    const tryToWrite = (): StoreProblem | undefined =>
      identity.findProblem() ?? findWriteProblem(db, options.lockTimeoutMs);
    return { db, identity, deleteBatch, tryToWrite, dropOldDeletions };
  } catch (fault) {
    reply({ kind: "not-open", message: fault instanceof Error ? fault.message : String(fault) });
    return undefined;
  }
}

/** Answers questions until it is told to close, and drops old records while there are none. */
function serve({ db, identity, deleteBatch, tryToWrite, dropOldDeletions }: Work, questions: MessagePort): void {
  const pace = new DropPace();
  dropSlice();
  const alertness = new Alertness(awakeMsMax);
  reply({ kind: "open" });
  while (db.isOpen) {
    const timeoutMs = pace.nextMs - performance.now();
    const question: Question<StorageWork> | undefined = wakeUp.nextQuestion(
      questions,
      timeoutMs,
      alertness.awakeMs,
    )?.message;
    alertness.asked(question?.kind === "deleteBatch" && question.value.ids.length === 1, performance.now());
    if (question !== undefined) {
      answer(question);
      alertness.answered(performance.now());
    } else if (performance.now() >= pace.nextMs) dropSlice();
  }

  function dropSlice(): void {
    const begunMs = performance.now();
    // A problem of the file is reported by the next batch or try to write.
    const dueMs = identity.findProblem() === undefined ? dropOldDeletions(Date.now()) : retentionIntervalMs;
    const nowMs = performance.now();
    pace.dropped(nowMs - begunMs, dueMs, nowMs);
  }

  function answer(question: Question<StorageWork>): void {
    switch (question.kind) {
      case "deleteBatch":
        pace.deleted(question.value.ids.length);
        return reply({ kind: "done", result: deleteBatch(question.value) });
      case "tryToWrite":
        return reply({ kind: "done", result: tryToWrite() });
      case "close":
        return identity.close();
      case "open":
        throw new Error("the file is already open");
      default:
        // A question without a case does not compile; it would never be answered.
        question satisfies never;
    }
  }
}

/**
 * Makes a commit that changes nothing, to find out whether commits work again, if the schema is still one that this
 * release can use.
 */
function findWriteProblem(db: DatabaseSync, lockTimeoutMs?: number): StoreProblem | undefined {
  const writeVersion = (): void => {
    demandUsable(db);
    const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
    db.exec(`PRAGMA user_version = ${String(version)}`);
  };
  try {
    runInTransaction(db, writeVersion, lockTimeoutMs);
    return undefined;
  } catch (fault) {
    // A schema can be brought back, or the process be replaced by that of a newer release, while it is not ready.
    if (fault instanceof StoreOpenError) return { text: fault.message, isTemporary: true };
    return fileProblemOf(fault);
  }
}
