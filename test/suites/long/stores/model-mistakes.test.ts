import { expect, test } from "vitest";
import type { PlantStore } from "../../../../src/service/plant-store.ts";
import { waitLimitMs } from "../../../../packages/testing/src/deadline.ts";
import { checkStore } from "../../../support/model/check-store.ts";
import { createSqlite } from "../../../support/model/databases.ts";
import { startInThread } from "../../../support/model/start-thread.ts";

// The model of test/stores/model.test.ts must notice these stores.
const run = { create: createSqlite, sequences: 3, limitMs: waitLimitMs / 2 };

const mistakes: readonly { readonly name: string; readonly delete: (store: PlantStore) => PlantStore["delete"] }[] = [
  {
    name: "reports a missing plant as deleted",
    delete: (store) => (id, call) => store.delete(id, call).then(() => true),
  },
  { name: "acknowledges a deletion without performing it", delete: () => () => Promise.resolve(true) },
  { name: "deletes the next plant", delete: (store) => (id, call) => store.delete(id + 1n, call) },
  {
    name: "ignores idempotency keys",
    delete: (store) => (id, call) => store.delete(id, { ...call, idempotencyKey: undefined }),
  },
];

test.each(mistakes)("the model notices a store that $name", async (mistake) => {
  const startStore = startInThread((store) => ({ ...store, delete: mistake.delete(store) }));
  await expect(checkStore({ ...run, startStore })).rejects.toThrow(/Property failed/);
});
