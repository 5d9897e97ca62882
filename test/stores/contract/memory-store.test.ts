import { openMemoryStore } from "../../../src/stores/queue/memory-store.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";

describePlantStore(
  async (ids) => {
    const plants = new Set(ids);
    const store = openMemoryStore(plants);
    return { store, plants: () => [...plants], [Symbol.asyncDispose]: () => store.close() };
  },
  {
    // Nothing outlives the process, records are kept, any number of deletions is queued, and there is no database.
    lacks: [
      "a reopened store",
      "a killed store",
      "deletion records",
      "a queued deletion",
      "a protected plant",
      "a locked plant",
      "a store without its tables",
    ],
  },
);
