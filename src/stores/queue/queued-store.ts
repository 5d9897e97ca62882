import { type PlantStore, storeUnavailable } from "../../service/index.ts";
import { type Backend, problemOf } from "../contract/backend.ts";
import { DeleteQueue, type QueueOptions, waitingMaxDefault } from "./delete-queue.ts";

/** Returns a plant store for a backend. The store has a queue per lane. */
export function queuedStore(backend: Backend, options: QueueOptions = {}): PlantStore {
  const queues = new Map<number, DeleteQueue>();
  const queueOf = (lane: number): DeleteQueue => {
    const known = queues.get(lane);
    if (known !== undefined) return known;
    const queue = new DeleteQueue(backend, options);
    queues.set(lane, queue);
    return queue;
  };
  let isClosed = false;
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
      let [forBatch, forBatchMax, forLock] = [0, 0, 0];
      for (const [lane, { waiting }] of queues) {
        forBatch += waiting.forBatch;
        forLock += waiting.forLock;
        // Reads the lanes only after a first batch, because a backend with a problem may not know its lanes.
        if (backend.lanes?.isUsed(lane) !== false) forBatchMax += waiting.forBatchMax;
      }
      return { forBatch, forBatchMax: forBatchMax || (options.waitingMax ?? waitingMaxDefault), forLock };
    },
    get connections() {
      return backend.connections;
    },
    get file() {
      return backend.file;
    },
    // Not an async function, because an async function would use more memory per waiting call.
    delete(id, call) {
      const problem = problemOf(backend);
      if (isClosed || problem !== undefined) return Promise.reject(storeUnavailable(problem));
      const { lanes } = backend;
      if (lanes === undefined) return queueOf(0).delete(id, call);
      return queueOf(lanes.of(id)).delete(id, call);
    },
    async close() {
      isClosed = true;
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await backend.close();
    },
  };
}
