import { DeleteQueue, type Outcomes, type TakenDelete } from "../delete-queue.ts";
import { outcomeUnknown, storeAway } from "../errors.ts";
import type { DeleteCall, PlantStore } from "../plant-store.ts";
import type { DatabaseOptions } from "./database.ts";
import type { DeleteBatch } from "./delete-batch.ts";
import type { FileProblem } from "./problem.ts";
import { StorageThread } from "./storage-thread.ts";

// About 15 ms of work for the storage thread: long enough to share an fsync, short enough to answer soon.
const batchMax = 1_024;

// About a third of a second of work. Who would wait longer is better told to come back.
const waitingMax = 16_384;

// How often a store that cannot write tries whether it can again.
const tryIntervalMs = 1_000;

/**
 * Opens a plant store in an SQLite file: one process, one file, and a thread that owns it.
 *
 * After a fault of the file it writes nothing, says so in `problem` and refuses deletions; it writes
 * again by itself once a fault that can pass, such as a full disk, has passed.
 *
 * @throws StoreOpenError naming the file and what is wrong with it
 */
export async function openSqliteStore(options: DatabaseOptions): Promise<PlantStore> {
  return new SqliteStore(options.file, await StorageThread.start(options));
}

class SqliteStore implements PlantStore {
  readonly #file: string;
  readonly #thread: StorageThread;
  readonly #queue = new DeleteQueue({ commit: (batch) => this.#commit(batch), batchMax, waitingMax, inFlightMax: 1 });
  #problem: FileProblem | undefined;
  #nextTry: NodeJS.Timeout | undefined;

  constructor(file: string, thread: StorageThread) {
    this.#file = file;
    this.#thread = thread;
    void thread.end.then((reason) => this.#stopWriting({ text: reason, passing: false }));
  }

  get problem(): string | undefined {
    return this.#problem && `${this.#file}: ${this.#problem.text}`;
  }

  delete(id: bigint, call: DeleteCall): Promise<boolean> {
    if (this.#problem !== undefined) return Promise.reject(storeAway(this.problem));
    return this.#queue.delete(id, call);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#stopWriting({ text: "the store is closed", passing: false });
    await this.#thread.close();
  }

  async #commit(taken: readonly TakenDelete[]): Promise<Outcomes> {
    // What was queued when writing stopped.
    if (this.#problem !== undefined) throw storeAway(this.problem);
    const reply = await this.#thread.ask({ kind: "delete", batch: batchOf(taken) }).catch((fault: unknown) => {
      throw outcomeUnknown(fault);
    });
    if (reply.kind !== "deleted") throw outcomeUnknown(`a batch was answered with ${reply.kind}`);
    if (reply.result.kind === "committed") return reply.result.outcomes;
    this.#stopWriting(reply.result.problem);
    throw reply.result.kind === "unknown" ? outcomeUnknown(this.problem) : storeAway(this.problem);
  }

  #stopWriting(problem: FileProblem): void {
    // The first fault that cannot pass is the reason; what follows it, such as the end of the thread, is not.
    if (this.#problem?.passing === false) return;
    this.#problem = problem;
    clearTimeout(this.#nextTry);
    if (problem.passing) this.#nextTry = setTimeout(() => void this.#tryToWrite(), tryIntervalMs).unref();
  }

  async #tryToWrite(): Promise<void> {
    const reply = await this.#thread.ask({ kind: "try-to-write" }).catch(() => undefined);
    // Closed or ended meanwhile: that reason stays.
    if (reply?.kind !== "tried" || this.#problem?.passing !== true) return;
    if (reply.problem === undefined) this.#problem = undefined;
    else this.#stopWriting(reply.problem);
  }
}

function batchOf(taken: readonly TakenDelete[]): DeleteBatch {
  return {
    ids: BigInt64Array.from(taken, ({ id }) => id),
    subjects: taken.map(({ call }) => call.subject),
    requestIds: taken.map(({ call }) => call.requestId),
  };
}
