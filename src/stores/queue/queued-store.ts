import type { ConnectError } from "@connectrpc/connect";
import { storeUnavailable, type PlantStore, type WaitingDeletions } from "../../service/index.ts";
import { type Attempt, type Backend, problemOf } from "../contract/backend.ts";
import { type Deletion, endings, type FailedEnding, TransitionError } from "../contract/deletion.ts";
import { DeferredDeletes } from "./deferred-deletes.ts";
import { DeleteQueue } from "./delete-queue.ts";
import type { OnBatch } from "../contract/durable-store-options.ts";

/** Options for {@link queuedStore}. Every backend supports these options. */
export interface QueueOptions {
  /** Maximum number of deletions in a batch. Default {@link batchMaxDefault}. */
  readonly batchMax?: number;
  /** Maximum number of queued deletions per lane, and of deferred deletions. Default {@link waitingMaxDefault}. */
  readonly waitingMax?: number;
  readonly onBatch?: OnBatch | undefined;
}

// A full batch takes a PostgreSQL server about 10 ms, or a storage thread 15 ms. Larger batches would add latency.
const batchMaxDefault = 1_024;

/**
 * Default maximum number of waiting deletions. A store takes a tenth to a third of a second to delete as many plants.
 * Callers that would have to wait longer get an error and should retry later.
 */
export const waitingMaxDefault = 16_384;

/** Returns a plant store for a backend. The store has a queue per lane, and another queue for deferred deletions. */
export function queuedStore(backend: Backend, options: QueueOptions = {}): PlantStore {
  const queues = new Queues(backend, options);
  let isClosed = false;
  const refusal = (): ConnectError | undefined => {
    if (backend.problem === undefined && !isClosed) return undefined;
    return storeUnavailable(problemOf(backend));
  };
  return {
    get problem() {
      const { name, pending } = backend;
      return problemOf(backend) ?? (pending && `${name}: ${pending}`);
    },
    get isChecking() {
      return backend.pending !== undefined;
    },
    get needsRestart() {
      const { problem } = backend;
      return problem?.isTemporary === false && problem.needsOperator !== true;
    },
    get waiting() {
      return queues.waiting;
    },
    get connections() {
      return backend.connections;
    },
    get file() {
      return backend.file;
    },
    // Not an async function, because an async function would use more memory per waiting call.
    delete(id, call) {
      const error = refusal();
      if (error !== undefined) return Promise.reject(error);
      const { lanes } = backend;
      if (lanes === undefined) return queues.of(0).delete(id, call);
      return queues.of(lanes.of(id)).delete(id, lanes.toRecordedCall(call, id));
    },
    async close() {
      isClosed = true;
      await queues.close();
      await backend.close();
    },
  };
}

class Queues {
  readonly #backend: Backend;
  readonly #options: Required<Omit<QueueOptions, "onBatch">> & Pick<QueueOptions, "onBatch">;
  readonly #ofLanes = new Map<number, DeleteQueue>();
  readonly #deferred: DeferredDeletes;

  constructor(backend: Backend, { batchMax = batchMaxDefault, waitingMax = waitingMaxDefault, onBatch }: QueueOptions) {
    this.#backend = backend;
    this.#options = { batchMax, waitingMax, onBatch };
    this.#deferred = new DeferredDeletes({
      commit: (batch, attempt) => this.#commit(batch, attempt),
      laneOf: (id) => backend.lanes?.of(id) ?? 0,
      attemptMsMin: backend.attemptMsMin ?? 0,
      batchMax,
      waitingMax,
    });
  }

  get waiting(): WaitingDeletions {
    let [forBatch, forBatchMax] = [0, 0];
    for (const [lane, { waiting }] of this.#ofLanes) {
      forBatch += waiting.forBatch;
      if (this.#backend.lanes?.isUsed(lane) !== false) forBatchMax += waiting.forBatchMax;
    }
    return { forBatch, forBatchMax: forBatchMax || this.#options.waitingMax, forLock: this.#deferred.waiting };
  }

  of(lane: number): DeleteQueue {
    const known = this.#ofLanes.get(lane);
    if (known !== undefined) return known;
    const deferred = this.#deferred;
    const queue = new DeleteQueue({
      commit: (batch, deadlineMs) => this.#commit(batch, { deadlineMs, isCareful: !deferred.isEmpty }),
      defer: (one, deadlineMs) => deferred.add(one, deadlineMs),
      inFlightMax: this.#backend.lanes?.inFlightMax ?? 1,
      ...this.#options,
    });
    this.#ofLanes.set(lane, queue);
    return queue;
  }

  async #commit(batch: readonly Deletion[], attempt: Attempt): Promise<FailedEnding | undefined> {
    try {
      return await this.#backend.commit(batch, attempt);
    } catch (fault) {
      // Only emits a warning, because callers need an ending in any case. The warning fails the tests.
      if (fault instanceof TransitionError) process.emitWarning(fault);
      return endings.outcomeUnknown(fault);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ofLanes.values()].map((queue) => queue.close()));
    await this.#deferred.close();
  }
}
