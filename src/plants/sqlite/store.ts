import { DeleteQueue, type Outcomes, type TakenDelete } from "../delete-queue.ts";
import { outcomeUnknown, plantKept, storeAway } from "../errors.ts";
import { Health } from "../health.ts";
import type { DeleteCall, PlantStore } from "../plant-store.ts";
import { recordText } from "../record-text.ts";
import { checkDeletionsKept } from "../retention.ts";
import type { DatabaseOptions } from "./database.ts";
import type { DeleteBatch } from "./delete-batch.ts";
import { fileProblemOf } from "./problem.ts";
import { StorageThread } from "./storage-thread.ts";

// About 15 ms of work for the storage thread: long enough to share an fsync, short enough to answer soon.
const batchMax = 1_024;

// About a third of a second of work. Who would wait longer is better told to come back.
const waitingMax = 16_384;

/**
 * Opens a plant store in an SQLite file: one process, one file, and a thread that owns it.
 *
 * After a fault of the file it writes nothing, says so in `problem` and refuses deletions; it writes
 * again by itself once a fault that can pass, such as a full disk, has passed.
 *
 * @throws StoreOpenError naming the file and what is wrong with it
 */
export async function openSqliteStore(options: DatabaseOptions): Promise<PlantStore> {
  checkDeletionsKept(options.deletionsKeptMs);
  return new SqliteStore(options.file, await StorageThread.start(options));
}

class SqliteStore implements PlantStore {
  readonly #file: string;
  readonly #thread: StorageThread;
  readonly #queue = new DeleteQueue({ commit: (batch) => this.#commit(batch), batchMax, waitingMax, inFlightMax: 1 });
  readonly #health = new Health(() => this.#thread.tryToWrite().catch(fileProblemOf));

  constructor(file: string, thread: StorageThread) {
    this.#file = file;
    this.#thread = thread;
    void thread.end.then((reason) => this.#health.report({ text: reason, passing: false }));
  }

  get problem(): string | undefined {
    const problem = this.#health.problem;
    return problem && `${this.#file}: ${problem.text}`;
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#health.problem !== undefined) return Promise.reject(storeAway(this.problem));
    return this.#queue.delete(id, call);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#health.report({ text: "the store is closed", passing: false });
    await this.#thread.close();
  }

  async #commit(taken: readonly TakenDelete[]): Promise<Outcomes> {
    // What was queued when writing stopped.
    if (this.#health.problem !== undefined) throw storeAway(this.problem);
    const result = await this.#thread.deleteBatch(batchOf(taken)).catch((fault: unknown) => {
      throw outcomeUnknown(fault);
    });
    tellKept(result.kept.map((i) => taken[i]));
    if (result.kind === "committed") return result.outcomes;
    // What stopped the rest of the batch does not undo what is durable.
    result.outcomes.forEach((isDeleted, i) => taken[i]?.resolve(isDeleted));
    this.#health.report(result.problem);
    throw result.kind === "unknown" ? outcomeUnknown(this.problem) : storeAway(this.problem);
  }
}

function tellKept(kept: readonly (TakenDelete | undefined)[]): void {
  for (const one of kept) one?.reject(plantKept(one.id));
}

function batchOf(taken: readonly TakenDelete[]): DeleteBatch {
  return {
    ids: taken.map(({ id }) => id),
    subjects: taken.map(({ call }) => recordText(call.subject)),
    requestIds: taken.map(({ call }) => recordText(call.requestId)),
  };
}
