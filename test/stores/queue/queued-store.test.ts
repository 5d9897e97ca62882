import { Code } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import type { Attempt, Backend } from "../../../src/stores/contract/backend.ts";
import { type Deletion, endings, type FailedEnding } from "../../../src/stores/contract/deletion.ts";
import { deferredMsMax } from "../../../src/stores/queue/deferred-deletes.ts";
import { type QueueOptions, queuedStore } from "../../../src/stores/queue/queued-store.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { fakeBackend } from "../../support/plants/fake-store.ts";

afterEach(() => void vi.useRealTimers());

type Commit = (batch: readonly Deletion[], attempt: Attempt) => FailedEnding | undefined;

/** Opens a store on a backend that commits with `commit`, and records its batches. */
function openStore(commit: Commit, options?: QueueOptions, backend: Partial<Backend> = {}) {
  const batches: { readonly ids: readonly bigint[]; readonly attempt: Attempt }[] = [];
  const commitRecorded: Backend["commit"] = async (batch, attempt) => {
    batches.push({ ids: batch.map(({ id }) => id), attempt });
    await new Promise(setImmediate);
    return commit(batch, attempt);
  };
  const store = queuedStore(fakeBackend(commitRecorded, backend), options);
  return { store, batches };
}

/** Returns a commit that defers each deletion the first time, and deletes its plant the second time. */
function deferOnce(): Commit {
  const known = new Set<Deletion>();
  return (batch) => {
    for (const one of batch) {
      if (known.has(one)) one.decide(endings.deleted);
      else one.defer();
      known.add(one);
    }
    return undefined;
  };
}

test("a deferred deletion is attempted again in a batch without lock waits", async () => {
  const { store, batches } = openStore(deferOnce());
  const deleting = store.delete(7n, deleteCall());
  await expect.poll(() => store.waiting).toEqual({ forBatch: 0, forBatchMax: 16_384, forLock: 1 });
  await expect(deleting).resolves.toBe(true);
  expect(batches.map(({ ids }) => ids)).toEqual([[7n], [7n]]);
  expect(batches.map(({ attempt }) => attempt.isCareful)).toEqual([false, true]);
  // A deferred deletion keeps its first batch's deadline.
  expect(new Set(batches.map(({ attempt }) => attempt.deadlineMs)).size).toBe(1);
  await store.close();
});

test("batches after a deferral do not wait for locks", async () => {
  const { store, batches } = openStore(deferOnce());
  const locked = store.delete(7n, deleteCall());
  await expect.poll(() => store.waiting?.forLock).toBe(1);
  const other = store.delete(8n, deleteCall());
  await expect(Promise.all([locked, other])).resolves.toEqual([true, true]);
  expect(batches[1]).toMatchObject({ ids: [8n], attempt: { isCareful: true } });
  await store.close();
});

test("batchMax and waitingMax also limit deferred deletions", async () => {
  const { store, batches } = openStore(deferOnce(), { batchMax: 2, waitingMax: 3 });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 4 }, (_, id) => store.delete(BigInt(id), deleteCall())),
  );
  expect(Math.max(...batches.map(({ ids }) => ids.length))).toBe(2);
  expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : one.reason))).toEqual([
    true,
    true,
    true,
    expect.objectContaining({ code: Code.ResourceExhausted }),
  ]);
  await store.close();
});

test("deferred deletions from different lanes are in different batches", async () => {
  const lanes = { of: Number, inFlightMax: 1, isUsed: () => true, toRecordedCall: <Call>(call: Call): Call => call };
  const { store, batches } = openStore(deferOnce(), {}, { lanes });
  await expect(Promise.all([1n, 2n].map((id) => store.delete(id, deleteCall())))).resolves.toEqual([true, true]);
  expect(batches.map(({ ids }) => ids)).toEqual([[1n], [2n], [1n], [2n]]);
  await store.close();
});

test("a store reports its waiting deletions while its backend does not know the lanes yet", () => {
  const backend: Backend = {
    ...fakeBackend(() => Promise.resolve(undefined), { problem: { text: "away", isTemporary: true } }),
    get lanes(): never {
      throw new Error("not known yet");
    },
  };
  expect(queuedStore(backend).waiting).toEqual({ forBatch: 0, forBatchMax: 16_384, forLock: 0 });
});

test("a store closes its backend only after its deferred deletions have ended", async () => {
  let isClosed = false;
  const close = async (): Promise<void> => void (isClosed = true);
  const { store } = openStore(deferOnce(), {}, { close });
  const deleting = store.delete(7n, deleteCall()).then((deleted) => ({ deleted, isClosed }));
  await store.close();
  expect(isClosed).toBe(true);
  await expect(deleting).resolves.toEqual({ deleted: true, isClosed: false });
});

test("a deferred deletion fails if its batch fails", async () => {
  const { store, batches } = openStore((batch) => {
    for (const one of batch) one.defer();
    return endings.unavailable("away");
  });
  await expect(store.delete(7n, deleteCall())).rejects.toMatchObject({ cause: "away" });
  expect(batches).toHaveLength(1);
  await store.close();
});

test("a deferred deletion fails if no time remains for another attempt", async () => {
  const { store, batches } = openStore(deferOnce(), {}, { attemptMsMin: 10_000 });
  await expect(store.delete(7n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
  expect(batches).toHaveLength(1);
  await store.close();
});

test.each([
  { name: "in doubt", token: "token", errorCode: "ERR_OUTCOME_UNKNOWN" },
  { name: "not in doubt", token: undefined, errorCode: "ERR_STORE_UNAVAILABLE" },
])("a deletion $name ends with $errorCode when deferred for two seconds", async ({ token, errorCode }) => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { store } = openStore((batch) => {
    for (const one of batch) {
      if (token !== undefined) one.doubt(token);
      one.defer();
    }
    return undefined;
  });
  const deleting = store.delete(7n, deleteCall());
  await expect.poll(() => store.waiting?.forLock).toBe(1);
  vi.advanceTimersByTime(deferredMsMax);
  await expect(deleting).rejects.toMatchObject({ errorCode });
  await store.close();
});
