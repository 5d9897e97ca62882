import { storeAway } from "./errors.ts";
import type { PlantStore } from "./plant-store.ts";

/**
 * Opens a store that is the given set, for benches and tests: the plants die with the process, and
 * there is no deletion record. Nothing ever waits, so no call is dropped.
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
