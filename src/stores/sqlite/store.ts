import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { DeleteQueue, type Outcomes, type PendingDelete } from "../delete-queue.ts";
import {
  idempotencyKeyReused,
  outcomeUnknown,
  plantProtected,
  storeUnavailable,
  type DeleteCall,
  type PlantStore,
  type WaitingDeletions,
} from "../../service/index.ts";
import type { OnBatch } from "../durable-store-options.ts";
import { StoreHealth } from "../store-health.ts";
import { StoreOpenError } from "../store-open-error.ts";
import { toStorableText } from "../storable-text.ts";
import { checkDeletionsKept } from "../retention.ts";
import type { OnUpkeep } from "../upkeep.ts";
import type { DatabaseOptions } from "./database.ts";
import type { DeleteBatch, DeleteOutcome } from "./delete-batch.ts";
import { fileProblemOf } from "./problem.ts";
import { StorageThread } from "./storage-thread.ts";

// About 15 ms of work for the storage thread: long enough to share an fsync, short enough for a low latency.
const batchMax = 1_024;

/**
 * The most deletions that wait for a batch: about a third of a second of work. Callers that would have to wait longer
 * get an error and should retry later.
 */
export const waitingMax = 16_384;

/** How often the file is checked with a write, in milliseconds, to detect a full disk or a removed file. */
export const watchIntervalMs = 10_000;

/** Options of {@link openSqliteStore}. */
export interface SqliteStoreOptions extends DatabaseOptions {
  readonly onBatch?: OnBatch | undefined;
  readonly onUpkeep?: OnUpkeep | undefined;
}

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
 * Opens a plant store in an SQLite file: one process, one file, and a thread that owns it. A missing store is refused,
 * unless `migrates` or `plantsWhenCreated` is set; then it is created.
 *
 * After a crash, the whole file is checked. The store is returned when the check starts; it already accepts deletions,
 * which wait until the check is finished.
 *
 * After an error of the file, the store stops writing, reports a `problem` and refuses deletions. After a temporary
 * error, such as a full disk, it resumes by itself.
 *
 * @throws StoreOpenError naming the file and what is wrong with it; TypeError for unknown options
 */
export async function openSqliteStore(storeOptions: SqliteStoreOptions): Promise<PlantStore> {
  refuseUnknownOptions(storeOptions, sqliteStoreOptionNames, "openSqliteStore");
  const { onBatch, onUpkeep, ...options } = storeOptions;
  checkDeletionsKept(options.deletionsKeptMs);
  return new SqliteStore(options.file, await StorageThread.start(options, onUpkeep), onBatch);
}

class SqliteStore implements PlantStore {
  readonly #file: string;
  readonly #thread: StorageThread;
  readonly #queue: DeleteQueue;
  #isChecking = true;
  readonly #health = new StoreHealth({
    findProblem: () => this.#thread.checkWrite().catch(fileProblemOf),
    watchIntervalMs,
  });

  constructor(file: string, thread: StorageThread, onBatch: OnBatch | undefined) {
    this.#file = file;
    this.#thread = thread;
    const commit = (batch: readonly PendingDelete[]): Promise<Outcomes> => this.#commit(batch);
    this.#queue = new DeleteQueue({ commit, batchMax, waitingMax, inFlightMax: 1, onBatch });
    // Waits for the check first: the thread may exit in the same turn in which its check fails, and the failed check is
    // then the reason.
    void this.#waitForCheck()
      .then(() => thread.exited)
      .then((reason) => this.#health.report({ text: reason, isTemporary: false }));
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    if (problem === undefined && this.#isChecking)
      return `${this.#file}: the file is being checked, because a crash left its write-ahead log`;
    return problem && `${this.#file}: ${problem.text}`;
  }

  get isChecking(): boolean {
    return this.#isChecking;
  }

  get needsRestart(): boolean {
    const { problem } = this.#health;
    return problem?.isTemporary === false && problem.needsOperator !== true;
  }

  get waiting(): WaitingDeletions {
    return { ...this.#queue.waiting, forLock: 0 };
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeUnavailable(this.problem));
    return this.#queue.delete(id, call);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await this.#thread.close();
  }

  async #waitForCheck(): Promise<void> {
    try {
      await this.#thread.opened;
    } catch (fault) {
      // Both the message and `problem` name the file.
      const text =
        fault instanceof StoreOpenError ? fault.message.replace(`cannot open ${this.#file}: `, "") : undefined;
      if (text !== undefined) this.#health.report({ text, isTemporary: false, needsOperator: true });
    }
    this.#isChecking = false;
  }

  async #commit(pending: readonly PendingDelete[]): Promise<Outcomes> {
    // These deletions have left the queue, so they are sent after the check even if their call is cancelled meanwhile.
    if (this.#isChecking) await this.#thread.opened.catch(() => undefined);
    // These deletions were requested before the store stopped writing.
    if (this.#health.problem !== undefined) throw storeUnavailable(this.problem);
    const result = await this.#thread.deleteBatch(toBatch(pending)).catch((fault: unknown) => {
      throw outcomeUnknown(fault);
    });
    const outcomes = result.outcomes.map((outcome, i) => deletedOrRejected(outcome, pending[i]));
    if (result.kind === "committed") return outcomes;
    // Settles the deletions that were durable before the batch stopped. The error is for the rest, because only the
    // first settlement of a deletion counts.
    outcomes.forEach((isDeleted, i) => isDeleted !== undefined && pending[i]?.resolve(isDeleted));
    this.#health.report(result.problem);
    throw result.kind === "unknown" ? outcomeUnknown(this.problem) : storeUnavailable(this.problem);
  }
}

/** Returns whether a deletion has deleted its plant; rejects it and returns `undefined` if it was refused. */
function deletedOrRejected(outcome: DeleteOutcome, pending: PendingDelete | undefined): boolean | undefined {
  if (typeof outcome === "boolean") return outcome;
  if (outcome === "replayed") return true;
  pending?.reject(outcome === "kept" ? plantProtected(pending.id) : idempotencyKeyReused());
  return undefined;
}

function toBatch(pending: readonly PendingDelete[]): DeleteBatch {
  const ids: bigint[] = [];
  const subjects: string[] = [];
  const requestIds: string[] = [];
  let hasKeys = false;
  for (const { id, call } of pending) {
    ids.push(id);
    subjects.push(toStorableText(call.subject));
    requestIds.push(toStorableText(call.requestId));
    hasKeys ||= call.idempotencyKey !== undefined;
  }
  const batch = { ids, subjects, requestIds };
  return hasKeys ? { ...batch, keys: pending.map(({ call }) => call.idempotencyKey) } : batch;
}
