import { expect, test } from "vitest";
import { openPlantStore } from "../../../src/stores/index.ts";
import { openMemoryStore } from "../../../src/stores/queue/memory-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
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

test("a repeated call with an idempotency key keeps a plant that was added again", async () => {
  const plants = new Set([1n]);
  const store = openMemoryStore(plants);
  const call = deleteCall({ idempotencyKey: "key" });
  await expect(store.delete(1n, call)).resolves.toBe(true);
  plants.add(1n);
  await expect(store.delete(1n, call)).resolves.toBe(true);
  expect(plants).toEqual(new Set([1n]));
});

test.for([
  [false, 0n],
  [true, 1n],
  [true, 3n],
  [false, 4n],
] as const)("a store that is created with plants 1 to 3 returns %s for plant %s", async ([want, id]) => {
  const store = await openPlantStore({ kind: "memory" }, { plantsWhenCreated: { first: 1n, last: 3n } });
  await expect(store.delete(id, deleteCall())).resolves.toBe(want);
});
