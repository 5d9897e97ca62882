import { Code } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import type { Backend } from "../../src/stores/contract/backend.ts";
import { endings } from "../../src/stores/contract/deletion.ts";
import { queuedStore } from "../../src/stores/queue/queued-store.ts";
import { deleteCall } from "../support/plants/delete-call.ts";
import { fakeBackend } from "../support/plants/fake-store.ts";

/** A backend that defers its first batch, and ends the first deletion of each larger one twice. */
function createFaultyBackend(defersFirst: boolean): Backend {
  let isFirst = defersFirst;
  return fakeBackend(async (batch) => {
    await new Promise(setImmediate);
    if (isFirst) {
      isFirst = false;
      for (const one of batch) one.defer();
      return undefined;
    }
    for (const one of [...batch.slice(0, -1), ...batch]) one.decide(endings.deleted);
    return undefined;
  });
}

test.each([
  { name: "a deletion", defersFirst: false },
  { name: "a deferred deletion", defersFirst: true },
])("$name that ends twice keeps its first outcome, and logs a warning", async (row) => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const store = queuedStore(createFaultyBackend(row.defersFirst));
  // The first deletion occupies the queue, so that the others are one batch.
  const first = store.delete(1n, deleteCall());
  const outcomes = await Promise.allSettled([2n, 3n].map((id) => store.delete(id, deleteCall())));
  await expect(first).resolves.toBe(true);
  expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : one.reason))).toEqual([
    true,
    expect.objectContaining({ code: Code.Unavailable, errorCode: "ERR_OUTCOME_UNKNOWN" }),
  ]);
  const error = { name: "TransitionError", message: "a deletion that is ended cannot become deleted" };
  expect(warn.mock.calls).toEqual([[expect.objectContaining(error)]]);
  warn.mockRestore();
  await store.close();
});

function logged(): readonly string[] {
  return [...(globalThis.openResources ?? [])].map(({ what }) => what);
}

test("a test file fails if a store has logged a TransitionError", async () => {
  process.emitWarning("a deletion that is ended cannot become deleted", "TransitionError");
  await expect.poll(logged).toContainEqual("a deletion that is ended cannot become deleted");
  for (const one of globalThis.openResources ?? [])
    if (one.what.startsWith("a deletion")) globalThis.openResources?.delete(one);
});
