import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { PlantStore, StoreFile } from "../../service/index.ts";
import { type Backend, problemOf, type Requested, toStorableText } from "../contract/backend.ts";
import { queuedStore } from "../queue/delete-queue.ts";
import { checkDeletionsKept, type DurableStoreOptions, StoreOpenError } from "../contract/store-options.ts";
import { StoreHealth, type StoreProblem } from "../contract/store-health.ts";
import type { DatabaseOptions } from "./database.ts";
import { failAll, type BatchRow } from "./delete-batch.ts";
import { claimFile, isClaimed } from "./file-names.ts";
import { StorageThread } from "./storage-thread.ts";

/** Interval between checks with a write, in milliseconds. The checks detect a full disk or a removed file. */
export const fileCheckIntervalMs = 10_000;

/** Options for {@link openSqliteStore}. */
export interface SqliteStoreOptions extends DatabaseOptions, DurableStoreOptions {}

const sqliteStoreOptionNames: OptionNames<SqliteStoreOptions> = {
  file: required,
  lockTimeoutMs: true,
  migrates: true,
  plantsWhenCreated: { first: true, last: true },
  deletionsKeptMs: true,
  onBatch: true,
  onUpkeep: true,
};

/**
 * Opens a plant store in an SQLite file, which a thread owns. Creates a missing store only if `migrates` or
 * `plantsWhenCreated` is set. Refuses a file that this process has already opened. After a crash, the whole file is
 * checked. The store then accepts deletions, which wait for the check. After a file error, the store reports a `problem`
 * and refuses deletions. After a temporary error, such as a full disk, the store resumes by itself.
 *
 * @throws StoreOpenError that names the file and the problem; TypeError for unknown options
 */
export async function openSqliteStore(storeOptions: SqliteStoreOptions): Promise<PlantStore> {
  refuseUnknownOptions(storeOptions, sqliteStoreOptionNames, "openSqliteStore");
  const { onBatch, onUpkeep, ...options } = storeOptions;
  checkDeletionsKept(options.deletionsKeptMs);
  if (isClaimed(options.file))
    throw new StoreOpenError(`cannot open ${options.file}: this process has already opened the file; share the store`);
  using opening = new DisposableStack();
  opening.use(claimFile(options.file));
  const thread = await StorageThread.start(options, onUpkeep);
  return queuedStore(createBackend(options.file, thread, opening.move()), { onBatch });
}

function createBackend(name: string, thread: StorageThread, claim: Disposable): Backend {
  let isChecking = true;
  let file: StoreFile = { hasSecondName: false, areCheckpointsStalled: false };
  const findProblem = async (): Promise<StoreProblem | undefined> => {
    // After a crash, requests wait for the check of the whole file.
    const reply = await (isChecking ? thread.request("check") : thread.check());
    file = reply.file ?? file;
    return reply.problem;
  };
  const health = new StoreHealth({ findProblem, watchIntervalMs: fileCheckIntervalMs });
  const watchThread = async (): Promise<void> => {
    // Waits for the check first, so that its failure is the reported reason even if the thread exits in the same turn.
    try {
      const problem = await thread.opened;
      if (problem !== undefined) health.report(problem);
    } catch (fault) {
      // Removes the file's name from the message, because `problem` adds the file's name.
      if (fault instanceof StoreOpenError) {
        const text = fault.message.replace(`cannot open ${name}: `, "");
        health.report({ text, isTemporary: false, needsOperator: true });
      }
    }
    isChecking = false;
    health.report({ text: await thread.exited, isTemporary: false });
  };
  void watchThread();
  return {
    name,
    get problem() {
      return health.problem;
    },
    get file() {
      return file;
    },
    get pending() {
      return isChecking ? "the file is being checked, because a crash left its write-ahead log" : undefined;
    },
    async commit(batch) {
      // A deletion that waits for the check has left the queue, and so is sent even if its call is cancelled.
      if (isChecking) await thread.opened.catch(() => undefined);
      // The store may have stopped writing while the batch waited for the check.
      const { problem, ...result } =
        health.problem === undefined
          ? await thread.request(batch.map(toRow))
          : failAll(batch, "unavailable", health.problem);
      if (problem === undefined) return result;
      health.report(problem);
      return { ...result, failure: problemOf(this) };
    },
    async close() {
      const isKnown = health.problem !== undefined;
      health.report({ text: "the store is closed", isTemporary: false });
      const found = await thread.close();
      claim[Symbol.dispose]();
      if (!isKnown && found?.needsOperator === true) throw new Error(`${name}: ${found.text}`);
    },
  };
}

function toRow({ id, call }: Requested): BatchRow {
  return [id, toStorableText(call.subject), toStorableText(call.requestId), call.idempotencyKey ?? null];
}
