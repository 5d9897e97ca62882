/**
 * The storage thread, which owns the SQLite file. A commit waits for the disk, and must not block the main thread. The
 * main thread only sends batches and receives the deletions' endings.
 */
import type { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreProblem } from "../contract/store-health.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { deletionsKeptMsDefault, retentionIntervalMs } from "../contract/retention.ts";
import { elapsedMsSince, type Upkeep } from "../contract/upkeep.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { prepareDeleteBatch } from "./delete-batch.ts";
import { spinMsAfter, ThreadWakeUp } from "./thread-wake-up.ts";
import { CheckpointWatch } from "./checkpoint-watch.ts";
import { FileIdentity, withIdentityChecks } from "./file-identity.ts";
import { prepareNameCheck } from "./file-names.ts";
import { assertUsable } from "./migrate.ts";
import { fileProblemOf } from "./problem.ts";
import { prepareRetention } from "./retention.ts";
import { runInTransaction } from "./transaction.ts";
import type { StorageRequest, StorageReply } from "./storage-thread.ts";

const port = parentPort;
if (port === null) throw new Error("this module must run in a worker thread");

const reply = (message: StorageReply): void => port.postMessage(message);

// The pause after a slice of expired records, as a multiple of its duration. With factor 6, dropping takes at most 14 %
// of the time, and drops twice as many records as deletions add at full load; with factor 9, 1.05 times as many.
const pauseFactor = 6;

const wakeUp = new ThreadWakeUp(workerData);
const first: StorageRequest | undefined = wakeUp.nextRequest(port, Infinity)?.message;
if (first?.kind !== "open") throw new Error(`the first request must be "open", got ${JSON.stringify(first?.kind)}`);
const work = prepareOrReport(first.options);
if (work !== undefined) serve(work, port);

/** The functions with which the thread serves an open file. */
type Work = NonNullable<ReturnType<typeof prepareOrReport>>;

function prepareOrReport(options: DatabaseOptions) {
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
    const deleteBatch = withIdentityChecks(identity, runBatch);
    const dropOldDeletions = prepareRetention(db, options.deletionsKeptMs ?? deletionsKeptMsDefault, onUpkeep);
    const hasSecondName = prepareNameCheck(options.file, onUpkeep);
    const checkpoints = new CheckpointWatch(db, identity.readIndex, onUpkeep);
    const checkWrite = (): StorageReply => {
      const problem =
        identity.findProblem() ??
        checkpoints.findProblem(performance.now()) ??
        findWriteProblem(db, options.lockTimeoutMs);
      const file = { hasSecondName: hasSecondName(), areCheckpointsStalled: checkpoints.isStalled };
      return { kind: "checked", problem, file };
    };
    return { db, identity, deleteBatch, checkWrite, dropOldDeletions };
  } catch (fault) {
    reply({ kind: "not-open", message: fault instanceof Error ? fault.message : String(fault) });
    return undefined;
  }
}

/** Replies to requests until `close`. Drops expired records while no request waits. */
function serve({ db, identity, deleteBatch, checkWrite, dropOldDeletions }: Work, requests: MessagePort): void {
  let hasDeleted = false;
  let nextSliceMs = dropSlice();
  let repliedMs = Number.NEGATIVE_INFINITY;
  let spinMs = 0;
  reply({ kind: "open" });
  while (db.isOpen) {
    const timeoutMs = nextSliceMs - performance.now();
    const request: StorageRequest | undefined = wakeUp.nextRequest(requests, timeoutMs, spinMs)?.message;
    const isSingle = request?.kind === "deleteBatch" && request.batch.ids.length === 1;
    spinMs = spinMsAfter(isSingle, performance.now() - repliedMs);
    if (request !== undefined) {
      handle(request);
      repliedMs = performance.now();
    } else if (performance.now() >= nextSliceMs) nextSliceMs = dropSlice();
  }

  // Returns when the next slice is due, with a pause if plants are deleted.
  function dropSlice(): number {
    const begunMs = performance.now();
    // Drops no records if the file has a problem. The next batch or check reports the problem.
    const dueMs = identity.findProblem() === undefined ? dropOldDeletions(Date.now()) : retentionIntervalMs;
    const nowMs = performance.now();
    const pauseMs = hasDeleted ? pauseFactor * (nowMs - begunMs) : 0;
    hasDeleted = false;
    return nowMs + Math.max(dueMs, pauseMs);
  }

  function handle(request: StorageRequest): void {
    switch (request.kind) {
      case "deleteBatch":
        hasDeleted = true;
        return reply({ kind: "ran", result: deleteBatch(request.batch) });
      case "checkWrite":
        return reply(checkWrite());
      case "close":
        return identity.close();
      default:
        // A request kind without a case is a compile error, because the request would never get a reply.
        throw new Error(`the file is already open: ${request.kind satisfies "open"}`);
    }
  }
}

/** Checks whether this release can use the schema, and whether commits work. The commit changes nothing. */
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
    // A schema problem is temporary. The operator may restore the schema or start a newer release.
    if (fault instanceof StoreOpenError) return { text: fault.message, isTemporary: true };
    return fileProblemOf(fault);
  }
}
