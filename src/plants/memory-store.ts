import { storeAway } from "./errors.ts";
import type { PlantStore } from "./plant-store.ts";

/**
 * Opens a store over the given set, for benches and tests: nothing outlives the process, and deletions are not
 * recorded. No deletion ever waits, so none is dropped.
 */
export function openMemoryStore(plants: Set<bigint> = new Set()): PlantStore {
  let closed = false;
  return {
    delete: (id) => (closed ? Promise.reject(storeAway()) : Promise.resolve(plants.delete(id))),
    get problem() {
      return closed ? "the store is closed" : undefined;
    },
    close: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}
