import { openMemoryStore } from "../../src/stores/queue/memory-store.ts";
import { describePlantStore } from "../support/plants/describe-plant-store.ts";

describePlantStore((ids) => {
  const plants = new Set(ids);
  const store = openMemoryStore(plants);
  return Promise.resolve({
    store,
    plants: () => [...plants],
    reopen: "forgets",
    [Symbol.asyncDispose]: () => store.close(),
  });
});
