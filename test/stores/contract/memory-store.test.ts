import { openMemoryStore } from "../../../src/stores/queue/memory-store.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";

describePlantStore(
  async (ids) => {
    const plants = new Set(ids);
    const store = openMemoryStore(plants);
    return { store, plants: () => [...plants], [Symbol.asyncDispose]: () => store.close() };
  },
  {
    // A memory store has no database, loses everything at exit, keeps all records and queues any number of deletions.
    // oxfmt-ignore
    lacks: [
      "a reopened store", "a killed store", "deletion records", "a queued deletion", "a protected plant",
      "a locked plant", "a store without its tables",
    ],
  },
);
