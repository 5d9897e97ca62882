import { storeUnavailable, type PlantStore } from "../service/index.ts";
import { type Backend, problemOf } from "./backend.ts";
import { DeleteQueue } from "./delete-queue.ts";
import type { OnBatch } from "./durable-store-options.ts";

/** Returns a plant store with a queue for each lane of a backend. */
export function queuedStore(backend: Backend, onBatch?: OnBatch): PlantStore {
  const { batchMax, waitingMax } = backend;
  const queues = new Map<number, DeleteQueue>();
  let isClosed = false;

  const queueOf = (lane: number): DeleteQueue => {
    const known = queues.get(lane);
    if (known !== undefined) return known;
    const inFlightMax = backend.lanes?.inFlightMax ?? 1;
    const queue = new DeleteQueue({
      commit: (batch) => backend.commit(batch),
      batchMax,
      waitingMax,
      inFlightMax,
      onBatch,
    });
    queues.set(lane, queue);
    return queue;
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
      let [forBatch, forBatchMax] = [0, 0];
      for (const [lane, { waiting }] of queues) {
        forBatch += waiting.forBatch;
        if (backend.lanes?.isUsed(lane) !== false) forBatchMax += waiting.forBatchMax;
      }
      return { forBatch, forBatchMax: forBatchMax || waitingMax, forLock: backend.deferred ?? 0 };
    },
    get connections() {
      return backend.connections;
    },
    get file() {
      return backend.file;
    },
    // Not an async function, because it would use more memory for each call that waits for its commit.
    delete(id, call) {
      if (backend.problem !== undefined) return Promise.reject(storeUnavailable(problemOf(backend)));
      if (isClosed) return Promise.reject(storeUnavailable());
      const { lanes } = backend;
      if (lanes === undefined) return queueOf(0).delete(id, call);
      return queueOf(lanes.of(id)).delete(id, lanes.toRecordedCall(call, id));
    },
    async close() {
      isClosed = true;
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await backend.close();
    },
  };
}
