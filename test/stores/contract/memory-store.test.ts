import { openMemoryStore } from "../../../src/stores/queue/memory-store.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";

describePlantStore(
  async (ids) => {
    const plants = new Set(ids);
    const store = openMemoryStore(plants);
    return { store, plants: () => [...plants], [Symbol.asyncDispose]: () => store.close() };
  },
  { lacks: ["durability"] },
);
