import { openMemoryStore } from "../../../src/stores/index.ts";
import type { DeleteCall, PlantStore } from "../../../src/service/index.ts";

/** Opens a store in memory with these plants that adds each call it receives to `calls`. */
export function recordCalls(plants: Set<bigint>, calls: DeleteCall[]): PlantStore {
  const memory = openMemoryStore(plants);
  return {
    ...memory,
    delete: (id, call) => {
      calls.push(call);
      return memory.delete(id, call);
    },
  };
}
