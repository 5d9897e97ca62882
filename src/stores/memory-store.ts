import { idempotencyKeyReused, storeUnavailable, type PlantStore } from "../service/index.ts";

/**
 * Opens a store that uses the given set, for benchmarks and tests. Nothing is persistent, and only deletions with an
 * idempotency key are recorded. Deletions are never queued, so cancelled calls are not dropped.
 */
export function openMemoryStore(plants: Set<bigint> = new Set()): PlantStore {
  const deletionsByKey = new Map<string, { readonly plantId: bigint; readonly subject: string }>();
  let closed = false;
  return {
    delete: (id, { subject, idempotencyKey }) => {
      if (closed) return Promise.reject(storeUnavailable());
      if (idempotencyKey === undefined) return Promise.resolve(plants.delete(id));
      const record = deletionsByKey.get(idempotencyKey);
      const isReused = record !== undefined && (record.plantId !== id || record.subject !== subject);
      if (isReused) return Promise.reject(idempotencyKeyReused());
      const isDeleted = record !== undefined || plants.delete(id);
      if (isDeleted) deletionsByKey.set(idempotencyKey, { plantId: id, subject });
      return Promise.resolve(isDeleted);
    },
    get problem() {
      return closed ? "the store is closed" : undefined;
    },
    close: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}
