import { expect, test } from "vitest";
import type { PlantStore } from "../../../../src/service/plant-store.ts";
import { waitLimitMs } from "../../../../protoport/testing/src/deadline.ts";
import { checkStore } from "../../../support/model/check-store.ts";
import { createSqlite } from "../../../support/model/databases.ts";
import { startInThread } from "../../../support/model/start-thread.ts";

// The model of test/stores/model.test.ts must notice these stores.
const run = { create: createSqlite, sequences: 3, limitMs: waitLimitMs / 2 };

// oxfmt-ignore
const mistakes: readonly { readonly name: string; readonly delete: (store: PlantStore) => PlantStore["delete"] }[] = [
  { name: "a missing plant reported as deleted",
    delete: (store) => (id, call) => store.delete(id, call).then(() => true) },
  { name: "an acknowledged deletion that is not performed", delete: () => () => Promise.resolve(true) },
  { name: "a deletion of the next plant", delete: (store) => (id, call) => store.delete(id + 1n, call) },
  { name: "an ignored idempotency key",
    delete: (store) => (id, call) => store.delete(id, { ...call, idempotencyKey: undefined }) },
];

test.each(mistakes)("$name fails the model test", async (mistake) => {
  const startStore = startInThread((store) => ({ ...store, delete: mistake.delete(store) }));
  await expect(checkStore({ ...run, startStore })).rejects.toThrow(/Property failed/);
});
