/**
 * The storage thread, which owns the SQLite file. A commit waits for the disk, and must not block the main thread. The
 * thread replies to requests in order, and drops expired records between them.
 */
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import type { StoreProblem } from "../contract/store-health.ts";
import {
  deletionsKeptMsDefault,
  elapsedMsSince,
  reportProblem,
  retentionIntervalMs,
  StoreOpenError,
} from "../contract/store-options.ts";
import { prepareCheckpoint } from "./checkpoint.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { prepareDeleteBatch, withIdentityChecks } from "./delete-batch.ts";
import { FileIdentity } from "./file-identity.ts";
import { secondNameOf } from "./file-names.ts";
import { schemaProblemOf } from "./migrate.ts";
import { fileProblemOf, isLocked } from "./problem.ts";
import { prepareRetention } from "./retention.ts";
import type { StorageMessage, StorageReply, StorageRequest } from "./storage-thread.ts";
import { runInTransaction } from "./transaction.ts";

const parent = parentPort;
if (parent === null) throw new Error("this module must run in a worker thread");

const postToParent = (message: StorageMessage): void => parent.postMessage(message);

// The pause after a slice of expired records, as a multiple of its duration. With factor 4, dropping keeps up with
// deletions at full load, even if each has an idempotency key.
const pauseFactor = 4;

parent.once("message", (options: DatabaseOptions) => {
  try {
    serve(options);
  } catch (fault) {
    postToParent({ outcomes: [], refusal: fault instanceof Error ? fault.message : String(fault) });
    parent.close();
  }
});

/** Opens the file, and replies to this and all later requests. @throws StoreOpenError if the file cannot be opened */
function serve(options: DatabaseOptions): void {
  const { file, lockTimeoutMs, deletionsKeptMs = deletionsKeptMsDefault } = options;
  const begunMs = performance.now();
  // The application may change its working directory later.
  const path = resolve(file);
  const db = openDatabase(
    options,
    (from, to) => postToParent({ kind: "migrated", from, to, lastedMs: elapsedMsSince(begunMs) }),
    () => postToParent("checking"),
  );
  const identity = new FileIdentity(path, db, lockTimeoutMs);
  const deleteBatch = withIdentityChecks(identity, prepareDeleteBatch(db, lockTimeoutMs));
  const dropOldDeletions = prepareRetention(db, deletionsKeptMs, postToParent);
  const reportSecondName = reportProblem(postToParent, "second-name-found", "second-name-gone");
  const checkpoint = prepareCheckpoint(db);
  const reportStall = reportProblem(postToParent, "checkpoints-stalled", "checkpoints-resumed");
  let timer: NodeJS.Timeout;
  const dropSlice = (): void => {
    const sliceMs = performance.now();
    // Drops no records if the file has a problem. The next batch or check reports the problem.
    const dueMs = identity.findProblem() === undefined ? dropOldDeletions(Date.now()) : retentionIntervalMs;
    timer = setTimeout(dropSlice, Math.max(dueMs, pauseFactor * (performance.now() - sliceMs)));
  };
  const check = (): StorageReply => {
    const hasSecondName = reportSecondName(findSecondName(path));
    const identityProblem = identity.findProblem();
    // A truncated or overwritten log must not be copied into the file.
    if (identityProblem !== undefined) return { outcomes: [], problem: identityProblem };
    const stall = checkpoint(performance.now());
    const problem = stall?.problem ?? findWriteProblem(db, identity, lockTimeoutMs);
    return { outcomes: [], problem, file: { hasSecondName, areCheckpointsStalled: reportStall(stall?.reason) } };
  };
  const close = (): StorageReply => {
    clearTimeout(timer);
    return { outcomes: [], problem: identity.close() };
  };
  const problem = findSpaceProblem(db, identity);
  if (problem?.isTemporary === false) {
    identity.close();
    throw new StoreOpenError(`cannot open ${file}: ${problem.text}`);
  }
  dropSlice();
  parent?.on("message", (request: Exclude<StorageRequest, DatabaseOptions>) => {
    if (typeof request === "object") postToParent(deleteBatch(request));
    else postToParent(request === "check" ? check() : close());
    if (request === "close") parent?.close();
  });
  postToParent({ outcomes: [], problem });
}

/** Returns the problem if a file has a second name. Ignores errors, because the other checks report a fault. */
function findSecondName(path: string): string | undefined {
  try {
    return secondNameOf(path);
  } catch {
    return undefined;
  }
}

/** Checks at the start whether the log can grow. Does not wait for another process's lock, as later checks do. */
function findSpaceProblem(db: DatabaseSync, identity: FileIdentity): StoreProblem | undefined {
  try {
    runInTransaction(db, () => identity.checkSpace(), 0);
    return undefined;
  } catch (fault) {
    return isLocked(fault) ? undefined : fileProblemOf(fault);
  }
}

/** Checks whether this release can use the schema, and whether commits work. The commit changes nothing. */
function findWriteProblem(db: DatabaseSync, identity: FileIdentity, lockTimeoutMs?: number): StoreProblem | undefined {
  const writeVersion = (): void => {
    identity.checkSpace();
    const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
    db.exec(`PRAGMA user_version = ${String(version)}`);
  };
  try {
    runInTransaction(db, writeVersion, lockTimeoutMs);
    return schemaProblemOf(db);
  } catch (fault) {
    return fileProblemOf(fault);
  }
}
