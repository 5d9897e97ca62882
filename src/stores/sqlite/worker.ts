/**
 * The thread that owns the file. A commit waits for the disk, and must not block anything else: the main thread only
 * sends batches here and receives their outcomes.
 */
import { availableParallelism } from "node:os";
import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreProblem } from "../store-health.ts";
import { StoreOpenError } from "../store-open-error.ts";
import { deletionsKeptMsDefault, retentionIntervalMs } from "../retention.ts";
import { elapsedMsSince, type Upkeep } from "../upkeep.ts";
import { SpinWait } from "./spin-wait.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { DropPace } from "./drop-pace.ts";
import { type BatchResult, type DeleteBatch, prepareDeleteBatch } from "./delete-batch.ts";
import { ThreadWakeUp } from "./thread-wake-up.ts";
import { FileIdentity, onlyWhileSameFile } from "./file-identity.ts";
import { assertUsable } from "./migrate.ts";
import { fileProblemOf } from "./problem.ts";
import { prepareRetention } from "./retention.ts";
import { runInTransaction } from "./transaction.ts";
import type { StorageRequest, StorageReply } from "./storage-messages.ts";

const port = parentPort;
if (port === null) throw new Error("this module must run in a worker thread");

const reply = (message: StorageReply): void => port.postMessage(message);

/**
 * How long the thread spins after a single deletion that arrived soon after the last one, in milliseconds: a caller
 * that deletes one plant after another sends the next request after about 0.1 ms. Zero on a single core, where spinning
 * would delay the response.
 */
const spinMsMax = availableParallelism() > 1 ? 0.15 : 0;

// Uses the memory that is shared with the main thread.
const wakeUp = new ThreadWakeUp(workerData);
const first: StorageRequest | undefined = wakeUp.nextRequest(port, Infinity)?.message;
if (first?.kind !== "open") throw new Error(`the first request must be "open", got ${JSON.stringify(first?.kind)}`);
const work = prepareOrReport(first.options);
if (work !== undefined) serve(work, port);

/** The functions that are prepared once the file is open. */
interface Work {
  readonly deleteBatch: (batch: DeleteBatch) => BatchResult;
  readonly checkWrite: () => StoreProblem | undefined;
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
      (from, to) => onUpkeep({ kind: "migrated", from, to, lastedMs: elapsedMsSince(begunMs) }),
      () => reply({ kind: "checking" }),
    );
    const runBatch = prepareDeleteBatch(db, options.lockTimeoutMs);
    const identity = new FileIdentity(options.file, db, options.lockTimeoutMs);
    const deleteBatch = onlyWhileSameFile(identity, runBatch);
    const dropOldDeletions = prepareRetention(db, options.deletionsKeptMs ?? deletionsKeptMsDefault, onUpkeep);
    const checkWrite = (): StoreProblem | undefined =>
      identity.findProblem() ?? findWriteProblem(db, options.lockTimeoutMs);
    return { db, identity, deleteBatch, checkWrite, dropOldDeletions };
  } catch (fault) {
    reply({ kind: "not-open", message: fault instanceof Error ? fault.message : String(fault) });
    return undefined;
  }
}

/** Replies to requests until `close`, and drops expired records while there are none. */
function serve({ db, identity, deleteBatch, checkWrite, dropOldDeletions }: Work, requests: MessagePort): void {
  const dropPace = new DropPace();
  dropSlice();
  const spinWait = new SpinWait(spinMsMax);
  reply({ kind: "open" });
  while (db.isOpen) {
    const timeoutMs = dropPace.nextMs - performance.now();
    const request: StorageRequest | undefined = wakeUp.nextRequest(requests, timeoutMs, spinWait.spinMs)?.message;
    spinWait.requested(request?.kind === "deleteBatch" && request.batch.ids.length === 1, performance.now());
    if (request !== undefined) {
      handle(request);
      spinWait.replied(performance.now());
    } else if (performance.now() >= dropPace.nextMs) dropSlice();
  }

  function dropSlice(): void {
    const begunMs = performance.now();
    // If the file has a problem, nothing is dropped; the next batch or check reports the problem.
    const dueMs = identity.findProblem() === undefined ? dropOldDeletions(Date.now()) : retentionIntervalMs;
    const nowMs = performance.now();
    dropPace.recordSlice(nowMs - begunMs, dueMs, nowMs);
  }

  function handle(request: StorageRequest): void {
    switch (request.kind) {
      case "deleteBatch":
        dropPace.recordDeletions(request.batch.ids.length);
        return reply({ kind: "ran", result: deleteBatch(request.batch) });
      case "checkWrite":
        return reply({ kind: "checked", problem: checkWrite() });
      case "close":
        return identity.close();
      case "open":
        throw new Error("the file is already open");
      default:
        // A request kind without a case is a compile error, because it would never get a reply.
        request satisfies never;
    }
  }
}

/**
 * Makes a commit that changes nothing, to check whether commits work and the schema is still usable by this release.
 */
function findWriteProblem(db: DatabaseSync, lockTimeoutMs?: number): StoreProblem | undefined {
  const writeVersion = (): void => {
    assertUsable(db);
    const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
    db.exec(`PRAGMA user_version = ${String(version)}`);
  };
  try {
    runInTransaction(db, writeVersion, lockTimeoutMs);
    return undefined;
  } catch (fault) {
    // Temporary: the schema may be restored, or the process replaced by a newer release, while it is not ready.
    if (fault instanceof StoreOpenError) return { text: fault.message, isTemporary: true };
    return fileProblemOf(fault);
  }
}
