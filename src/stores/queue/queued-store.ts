import type { PlantStore } from "../../service/index.ts";
import { type Backend, problemOf, refusalOf } from "../contract/backend.ts";
import { endings, type FailedEnding } from "../contract/deletion.ts";
import { DeferredDeletes } from "./deferred-deletes.ts";
import { DeleteQueue, type DeleteQueueOptions } from "./delete-queue.ts";

/**
 * Options for {@link queuedStore}. `waitingMax` applies to the queued deletions of each lane, and to the deferred
 * deletions. Defaults {@link batchMaxDefault} and {@link waitingMaxDefault}.
 */
export type QueueOptions = Partial<DeleteQueueOptions>;

// A full batch takes a PostgreSQL server about 10 ms, or a storage thread 15 ms. Larger batches would add latency.
const batchMaxDefault = 1_024;

/**
 * Default maximum number of waiting deletions. A store deletes this number of plants in 0.1 to 0.3 s. Callers that
 * would have to wait longer get an error and should retry later.
 */
export const waitingMaxDefault = 16_384;

/** Returns a plant store for a backend. The store has a queue per lane, and another queue for deferred deletions. */
export function queuedStore(
  backend: Backend,
  { batchMax = batchMaxDefault, waitingMax = waitingMaxDefault, onBatch }: QueueOptions = {},
): PlantStore {
  const deferred = new DeferredDeletes(backend, batchMax, waitingMax);
  const queues = new Map<number, DeleteQueue>();
  const queueOf = (lane: number): DeleteQueue => {
    const known = queues.get(lane);
    if (known !== undefined) return known;
    const queue = new DeleteQueue(backend, deferred, { batchMax, waitingMax, onBatch });
    queues.set(lane, queue);
    return queue;
  };
  let isClosed = false;
  const refusal = (): FailedEnding | undefined => refusalOf(backend) ?? (isClosed ? endings.unavailable() : undefined);
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
      let [forBatch, forBatchMax] = [0, 0];
      for (const [lane, { waiting }] of queues) {
        forBatch += waiting.forBatch;
        // Reads the lanes only after a first batch, because a backend with a problem may not know its lanes.
        if (backend.lanes?.isUsed(lane) !== false) forBatchMax += waiting.forBatchMax;
      }
      return { forBatch, forBatchMax: forBatchMax || waitingMax, forLock: deferred.waiting };
    },
    get connections() {
      return backend.connections;
    },
    get file() {
      return backend.file;
    },
    // Not an async function, because an async function would use more memory per waiting call.
    delete(id, call) {
      const refused = refusal();
      if (refused !== undefined) return Promise.reject(refused.error);
      const { lanes } = backend;
      if (lanes === undefined) return queueOf(0).delete(id, call);
      return queueOf(lanes.of(id)).delete(id, lanes.toRecordedCall(call, id));
    },
    async close() {
      isClosed = true;
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await deferred.close();
      await backend.close();
    },
  };
}
