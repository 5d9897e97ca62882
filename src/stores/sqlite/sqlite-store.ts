import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { PlantStore, StoreFile } from "../../service/index.ts";
import { type Backend, type BatchResult, problemOf, type Requested } from "../contract/backend.ts";
import { queuedStore } from "../queue/queued-store.ts";
import type { DurableStoreOptions } from "../contract/durable-store-options.ts";
import { StoreHealth, type StoreProblem } from "../contract/store-health.ts";
import { StoreOpenError } from "../contract/store-open-error.ts";
import { toStorableText } from "../contract/storable-text.ts";
import { checkDeletionsKept } from "../contract/retention.ts";
import type { DatabaseOptions } from "./database.ts";
import { failAll, type Row } from "./delete-batch.ts";
import { claimFile, isClaimed } from "./open-once.ts";
import { StorageThread } from "./storage-thread.ts";

/** Interval between checks with a write, in milliseconds. The checks detect a full disk or a removed file. */
export const watchIntervalMs = 10_000;

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
 * Opens a plant store in an SQLite file. A separate thread owns the file. Creates a missing store only if `migrates` or
 * `plantsWhenCreated` is set. Refuses a file that this process has already opened.
 *
 * After a crash, the whole file is checked. The promise resolves without waiting for the check. During the check, the
 * store accepts deletions, but deletions wait until the check is finished.
 *
 * After a file error, the store stops writing, reports a `problem` and refuses deletions. After a temporary error, such
 * as a full disk, the store resumes by itself.
 *
 * @throws StoreOpenError that names the file and the problem; TypeError for unknown options
 */
export async function openSqliteStore(storeOptions: SqliteStoreOptions): Promise<PlantStore> {
  refuseUnknownOptions(storeOptions, sqliteStoreOptionNames, "openSqliteStore");
  const { onBatch, onUpkeep, ...options } = storeOptions;
  const { file } = options;
  checkDeletionsKept(options.deletionsKeptMs);
  if (isClaimed(file))
    throw new StoreOpenError(`cannot open ${file}: this process has already opened the file; share the store`);
  using opening = new DisposableStack();
  opening.use(claimFile(file));
  const thread = await StorageThread.start(options, onUpkeep);
  return queuedStore(new SqliteBackend(file, thread, opening.move()), { onBatch });
}

class SqliteBackend implements Backend {
  readonly name: string;
  readonly #health = new StoreHealth({
    findProblem: () => this.#thread.checkWrite(),
    watchIntervalMs,
  });
  readonly #thread: StorageThread;
  readonly #claim: Disposable;
  #isChecking = true;

  constructor(file: string, thread: StorageThread, claim: Disposable) {
    this.name = file;
    this.#thread = thread;
    this.#claim = claim;
    void this.#watchThread();
  }

  get problem(): StoreProblem | undefined {
    return this.#health.problem;
  }

  get file(): StoreFile {
    return this.#thread.file;
  }

  get pending(): string | undefined {
    return this.#isChecking ? "the file is being checked, because a crash left its write-ahead log" : undefined;
  }

  async commit(batch: readonly Requested[]): Promise<BatchResult> {
    // A deletion that waits for the check has left the queue, and so is sent even if its call is cancelled.
    if (this.#isChecking) await this.#thread.opened.catch(() => undefined);
    // The store may have stopped writing while the batch waited for the check.
    const { outcomes, problem } =
      this.problem === undefined
        ? await this.#thread.deleteBatch(batch.map(toRow))
        : failAll(batch, "unavailable", this.problem);
    if (problem === undefined) return { outcomes };
    this.#health.report(problem);
    return { outcomes, failure: problemOf(this) };
  }

  async close(): Promise<void> {
    this.#health.report({ text: "the store is closed", isTemporary: false });
    await this.#thread.close();
    this.#claim[Symbol.dispose]();
  }

  async #watchThread(): Promise<void> {
    // Waits for the check first, so that its failure is the reported reason even if the thread exits in the same turn.
    try {
      const problem = await this.#thread.opened;
      if (problem !== undefined) this.#health.report(problem);
    } catch (fault) {
      if (fault instanceof StoreOpenError) {
        // Removes the file's name from the message, because `problem` adds the file's name.
        const text = fault.message.replace(`cannot open ${this.name}: `, "");
        this.#health.report({ text, isTemporary: false, needsOperator: true });
      }
    }
    this.#isChecking = false;
    this.#health.report({ text: await this.#thread.exited, isTemporary: false });
  }
}

function toRow({ id, call }: Requested): Row {
  return [id, toStorableText(call.subject), toStorableText(call.requestId), call.idempotencyKey ?? null];
}
