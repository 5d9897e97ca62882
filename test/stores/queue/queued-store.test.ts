import { expect, test } from "vitest";
import type { Backend } from "../../../src/stores/contract/backend.ts";
import { queuedStore } from "../../../src/stores/queue/delete-queue.ts";
import { deleteCall, fakeBackend } from "../../support/plants/index.ts";

test("locked deletions of different lanes are in different batches", async () => {
  const batches: (readonly bigint[])[] = [];
  const lanes = { of: Number, maxInFlight: 1 };
  const commit: Backend["commit"] = async (batch) => {
    batches.push(batch.map(({ id }) => id));
    return { outcomes: batch.map(() => (batches.length > 2 ? "deleted" : "locked")) };
  };
  const store = queuedStore(fakeBackend(commit, { lanes }));
  const deletions = [1n, 2n].map((id) => store.delete(id, deleteCall()));
  await expect.poll(() => store.waiting).toEqual({ forBatch: 0, maxForBatch: 2 * 16_384, forLock: 2 });
  await expect(Promise.all(deletions)).resolves.toEqual([true, true]);
  expect(batches).toEqual([[1n], [2n], [1n], [2n]]);
  await store.close();
});

test("a store reports its waiting deletions while its backend does not know the lanes yet", () => {
  const backend: Backend = {
    ...fakeBackend(() => Promise.resolve({ outcomes: [] }), { problem: { text: "away", isTemporary: true } }),
    get lanes(): never {
      throw new Error("not known yet");
    },
  };
  expect(queuedStore(backend).waiting).toEqual({ forBatch: 0, maxForBatch: 16_384, forLock: 0 });
  expect(queuedStore(backend, { maxWaiting: 7 }).waiting).toEqual({ forBatch: 0, maxForBatch: 7, forLock: 0 });
});

test.for([
  ["needs a restart after a permanent problem", { isTemporary: false }, true],
  ["needs no restart after a temporary problem", { isTemporary: true }, false],
  ["needs no restart before an operator has acted", { isTemporary: false, needsOperator: true }, false],
] as const)("a store %s, and refuses deletions", async ([, problem, needsRestart]) => {
  const about = { name: "plants.db", problem: { text: "away", ...problem } };
  const store = queuedStore(fakeBackend(() => expect.unreachable(), about));
  expect([store.problem, store.needsRestart, store.isChecking]).toEqual(["plants.db: away", needsRestart, false]);
  await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE" });
});

test("a store whose file is being checked reports the check, and accepts deletions", async () => {
  const pending = "the file is being checked";
  const store = queuedStore(fakeBackend(async () => ({ outcomes: ["deleted"] }), { name: "plants.db", pending }));
  expect([store.problem, store.needsRestart, store.isChecking]).toEqual([`plants.db: ${pending}`, false, true]);
  await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
});

test("a store closes its backend after its locked deletions have ended, and refuses new ones", async () => {
  let [isClosed, batches] = [false, 0];
  const options = { close: async (): Promise<void> => void (isClosed = true) };
  const store = queuedStore(fakeBackend(async () => ({ outcomes: [batches++ === 0 ? "locked" : "deleted"] }), options));
  const deleting = store.delete(7n, deleteCall()).then((deleted) => ({ deleted, isClosed }));
  const closing = store.close();
  await expect(store.delete(8n, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE" });
  await closing;
  expect(isClosed).toBe(true);
  await expect(deleting).resolves.toEqual({ deleted: true, isClosed: false });
});
