import { Code, ConnectError } from "@connectrpc/connect";
import { array, assert, asyncProperty, constant, constantFrom, integer, nat, oneof, record } from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Backend } from "../../../src/stores/contract/backend.ts";
import { DeferredDeletes } from "../../../src/stores/queue/deferred-deletes.ts";
import { DeleteQueue, type DeleteQueueOptions } from "../../../src/stores/queue/delete-queue.ts";
import { type Deletion, endings, type FailedEnding } from "../../../src/stores/contract/deletion.ts";
import type { OnBatch } from "../../../src/stores/index.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { fakeBackend } from "../../support/plants/fake-store.ts";
import { refusalOf } from "../../support/plants/refusal.ts";

afterEach(() => void vi.useRealTimers());

type Options = Partial<DeleteQueueOptions> & { readonly inFlightMax?: number };

/** Opens a queue whose backend has one lane, and defers no deletion. */
function openQueueOn(commit: Backend["commit"], { inFlightMax = 1, ...options }: Options): DeleteQueue {
  const lanes = { of: () => 0, inFlightMax, isUsed: () => true, toRecordedCall: <Call>(call: Call): Call => call };
  const backend = fakeBackend(commit, { lanes });
  return new DeleteQueue(backend, new DeferredDeletes(backend, 100, 0), { batchMax: 100, waitingMax: 100, ...options });
}

/** Opens a queue whose batches stay in flight until the test resolves them. */
function openQueue(options: Options = {}) {
  const sent: { readonly batch: readonly Deletion[]; readonly end: PromiseWithResolvers<FailedEnding | undefined> }[] =
    [];
  const queue = openQueueOn((batch) => {
    const end = Promise.withResolvers<FailedEnding | undefined>();
    sent.push({ batch, end });
    return end.promise;
  }, options);
  const endBatch = (index: number, outcomes: readonly number[]): void => {
    sent[index]?.batch.forEach((one, i) => one.decide(outcomes[i] === 1 ? endings.deleted : endings.absent));
    sent[index]?.end.resolve(undefined);
  };
  return {
    queue,
    endBatch,
    sentIds: () => sent.map(({ batch }) => batch.map(({ id }) => id)),
    failBatch: (index: number, error: Error) => sent[index]?.end.resolve({ kind: "unavailable", error }),
  };
}

// Opens a queue like `openQueue` that has committed enough batches that the next one may be large. The test's clock
// stands still, because slow commits would lower the queue's limit.
async function openUsedQueue(options: Options) {
  vi.useFakeTimers({ toFake: ["performance"] });
  const opened = openQueue(options);
  let batches = 0;
  // Batches double up to 128, and three have 200.
  const deletions = idsFrom(1_000, 855).map((id) => opened.queue.delete(id, deleteCall()));
  for (; batches < opened.sentIds().length; batches++) {
    opened.endBatch(batches, Array<number>(200).fill(1));
    await new Promise(setImmediate);
  }
  await Promise.all(deletions);
  return {
    queue: opened.queue,
    endBatch: (index: number, outcomes: readonly number[]) => opened.endBatch(batches + index, outcomes),
  };
}

/** Advances the clock of {@link openTimedQueue}. */
function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
}

/** Opens a queue like {@link openQueue} that uses the test's clock. */
function openTimedQueue(options: { readonly inFlightMax?: number } = {}) {
  vi.useFakeTimers({ toFake: ["performance"] });
  pass(10_000);
  const { queue, endBatch, sentIds } = openQueue(options);
  return {
    queue,
    sentIds,
    ask: (ids: readonly bigint[]) => ids.map((id) => queue.delete(id, deleteCall())),
    endAfter: async (ms: number, index: number, calls: readonly Promise<boolean>[]): Promise<void> => {
      pass(ms);
      endBatch(index, Array<number>(calls.length).fill(1));
      await Promise.all(calls);
    },
  };
}

function idsFrom(first: number, count: number): bigint[] {
  return Array.from({ length: count }, (_, i) => BigInt(first + i));
}

describe("the deletion queue", () => {
  test("reports each sent and settled batch, and the number of waiting deletions", async () => {
    const batches: unknown[] = [];
    const onBatch: OnBatch = (calls) => {
      batches.push(calls.length);
      return (error) => batches.push(error);
    };
    const { queue, endBatch, failBatch } = openQueue({ onBatch });
    const deletions = [1n, 2n, 3n].map((id) => queue.delete(id, deleteCall()));
    expect({ batches, waiting: queue.waiting.forBatch }).toEqual({ batches: [1], waiting: 2 });
    endBatch(0, [1]);
    await deletions[0];
    expect({ batches, waiting: queue.waiting.forBatch }).toEqual({ batches: [1, undefined, 2], waiting: 0 });
    const fault = new ConnectError("away", Code.Unavailable);
    failBatch(1, fault);
    await expect(deletions[1]).rejects.toBe(fault);
    await expect(deletions[2]).rejects.toBe(fault);
    expect(batches).toEqual([1, undefined, 2, fault]);
  });

  test("sends a single deletion immediately", () => {
    const { queue, sentIds } = openQueue();
    void queue.delete(1n, deleteCall());
    expect(sentIds()).toEqual([[1n]]);
  });

  test("collects the deletions that arrive during a batch into batches that double", async () => {
    const { queue, endBatch, sentIds } = openQueue();
    const first = queue.delete(1n, deleteCall());
    const others = [5n, 3n, 4n, 2n].map((id) => queue.delete(id, deleteCall()));
    endBatch(0, [1]);
    await expect(first).resolves.toBe(true);
    endBatch(1, [1, 0]);
    await others[1];
    expect(sentIds()).toEqual([[1n], [5n, 3n], [4n, 2n]]);
    endBatch(2, [1, 0]);
    await expect(Promise.all(others)).resolves.toEqual([true, false, true, false]);
  });

  test("never exceeds the maximum batch size", async () => {
    const { queue, endBatch, sentIds } = openQueue({ batchMax: 2 });
    const deletions = [1n, 2n, 3n, 4n].map((id) => queue.delete(id, deleteCall()));
    endBatch(0, [1]);
    await deletions[0];
    endBatch(1, [1, 1]);
    await deletions[2];
    expect(sentIds()).toEqual([[1n], [2n, 3n], [4n]]);
  });

  test("sends at most inFlightMax batches concurrently", () => {
    const { queue, sentIds } = openQueue({ inFlightMax: 2 });
    for (const id of [1n, 2n, 3n]) void queue.delete(id, deleteCall());
    expect(sentIds()).toEqual([[1n], [2n]]);
  });

  test("refuses deletions above its limit with a retry time", async () => {
    const { queue, sentIds } = openQueue({ waitingMax: 1 });
    void queue.delete(1n, deleteCall());
    void queue.delete(2n, deleteCall());
    const refused = await refusalOf(queue.delete(3n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.ResourceExhausted });
    expect(refused.metadata.get("retry-after")).toBe("1");
    expect(sentIds()).toEqual([[1n]]);
  });

  test("refuses the newest deletions once batches are late for a second", async () => {
    const { queue, ask, endAfter, sentIds } = openTimedQueue();
    const lone = ask([1n]);
    const first = ask([10n, 11n]);
    await endAfter(1, 0, lone);
    const second = ask(idsFrom(20, 5));
    await endAfter(200, 1, first);
    // A long batch is followed by one with a single deletion, which shows how long a commit takes.
    await endAfter(1, 2, second.splice(0, 1));
    const last = ask(idsFrom(30, 30));
    await endAfter(1_100, 3, second);
    // At 2 plants in 200 ms, halved by the slower batch, the store deletes 3 in half a second, so 3 stay queued.
    const kept = last.splice(0, 3);
    const refused = await Promise.all(last.map(refusalOf));
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set([Code.ResourceExhausted]));
    expect(sentIds().at(-1)).toEqual([30n]);
    // The store deletes less than one plant in the planned duration of a batch.
    expect(queue.waiting).toEqual({ forBatch: 2, forBatchMax: 1 });
    pass(800);
    expect(await refusalOf(queue.delete(201n, deleteCall()))).toMatchObject({ code: Code.ResourceExhausted });
    // Still overloaded, because the last deletion was refused less than a second ago.
    await endAfter(800, 4, kept.slice(0, 1));
    expect(queue.waiting).toEqual({ forBatch: 1, forBatchMax: 1 });
    await endAfter(1, 5, kept.slice(1, 2));
    await endAfter(1, 6, kept.slice(2));
    expect(queue.waiting).toEqual({ forBatch: 0, forBatchMax: 100 });
  });

  test("is not idle while another batch is being committed", async () => {
    const { queue, ask, endAfter } = openTimedQueue({ inFlightMax: 2 });
    const [lone, other] = [ask([1n]), ask([2n])];
    const first = ask([10n, 11n]);
    await endAfter(1, 0, lone);
    const second = ask([30n, 31n]);
    await endAfter(0, 1, other);
    const third = ask([50n, 51n]);
    await endAfter(100, 2, first);
    await endAfter(1_100, 3, second);
    await endAfter(900, 5, third.slice(1));
    expect(queue.waiting).toEqual({ forBatch: 0, forBatchMax: 1 });
    await endAfter(0, 4, third.slice(0, 1));
    expect(queue.waiting).toEqual({ forBatch: 0, forBatchMax: 100 });
  });

  test.each(["s".repeat(1_025), "a\0b", "a\uD83Cb"])(
    "refuses an idempotency key for the subject %j, which cannot be recorded",
    async (subject) => {
      const { queue, sentIds } = openQueue();
      const refused = await refusalOf(queue.delete(1n, deleteCall({ subject, idempotencyKey: "key" })));
      expect(refused).toMatchObject({ code: Code.FailedPrecondition, errorCode: "ERR_SUBJECT_NOT_RECORDABLE" });
      void queue.delete(2n, deleteCall({ subject }));
      expect(sentIds()).toEqual([[2n]]);
    },
  );

  test("rejects a cancelled queued call with its reason, and never sends it", async () => {
    const { queue, endBatch, sentIds } = openQueue();
    const first = queue.delete(1n, deleteCall());
    const controller = new AbortController();
    const failure = queue.delete(2n, deleteCall({ signal: controller.signal }));
    const last = queue.delete(3n, deleteCall());
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    endBatch(0, [1]);
    await first;
    await expect(failure).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(sentIds()).toEqual([[1n], [3n]]);
    endBatch(1, [1]);
    await expect(last).resolves.toBe(true);
  });

  test("never sends a call that was cancelled before it was queued", async () => {
    const { queue, endBatch, sentIds } = openQueue();
    void queue.delete(1n, deleteCall());
    const failure = queue.delete(2n, deleteCall({ signal: AbortSignal.abort(new Error("gone")) }));
    endBatch(0, [1]);
    await expect(failure).rejects.toThrow("gone");
    expect(sentIds()).toEqual([[1n]]);
  });

  test("does not read the signal of a call that is sent immediately", async () => {
    const { queue, endBatch } = openQueue();
    const context = {
      get signal(): AbortSignal {
        throw new Error("the signal was read");
      },
    };
    const sent = queue.delete(1n, { ...deleteCall(), context });
    endBatch(0, [1]);
    await expect(sent).resolves.toBe(true);
  });

  test("resolves a sent call with its outcome even if it is cancelled", async () => {
    const { queue, endBatch } = openQueue();
    const controller = new AbortController();
    const sent = queue.delete(1n, deleteCall({ signal: controller.signal }));
    controller.abort();
    endBatch(0, [1]);
    await expect(sent).resolves.toBe(true);
  });

  test("rejects every call in a failed batch with the reason, and continues", async () => {
    const { queue, endBatch, failBatch } = openQueue();
    const first = queue.delete(1n, deleteCall());
    const second = queue.delete(2n, deleteCall());
    failBatch(0, new ConnectError("away", Code.Unavailable));
    await expect(first).rejects.toMatchObject({ code: Code.Unavailable });
    endBatch(1, [1]);
    await expect(second).resolves.toBe(true);
  });

  test("settles a large batch in order without blocking the event loop", async () => {
    const { queue, endBatch } = await openUsedQueue({ batchMax: 200, waitingMax: 900 });
    const settledIds: bigint[] = [];
    const remove = (id: bigint) => queue.delete(id, deleteCall()).then((deleted) => deleted && settledIds.push(id));
    const first = remove(0n);
    const ids = Array.from({ length: 200 }, (_, i) => BigInt(i + 1));
    const calls = ids.map(remove);
    endBatch(0, [1]);
    await first;
    endBatch(
      1,
      ids.map(() => 1),
    );
    const settledByTurn: number[] = [];
    const settledWhenClosed = queue.close().then(() => settledIds.length);
    while (settledIds.length <= ids.length) {
      await new Promise(setImmediate);
      settledByTurn.push(settledIds.length);
    }
    await Promise.all(calls);
    expect(await settledWhenClosed).toBe(201);
    expect(settledByTurn).toEqual([65, 129, 193, 201]);
    expect(settledIds).toEqual([0n, ...ids]);
  });

  test("closes only after an earlier large batch is settled", async () => {
    const { queue, endBatch } = await openUsedQueue({ batchMax: 200, waitingMax: 900, inFlightMax: 2 });
    const remove = (id: bigint): Promise<boolean> => queue.delete(id, deleteCall());
    const [first, second] = [remove(0n), remove(1n)];
    const settled: bigint[] = [];
    const many = idsFrom(2, 200).map((id) => remove(id).then(() => settled.push(id)));
    endBatch(0, [1]);
    await first;
    const last = remove(300n);
    endBatch(2, Array<number>(200).fill(1));
    endBatch(1, [1]);
    await second;
    endBatch(3, [1]);
    const settledWhenClosed = queue.close().then(() => settled.length);
    await Promise.all([last, ...many]);
    expect(await settledWhenClosed).toBe(200);
  });

  test("closes once every accepted deletion has its outcome", async () => {
    const { queue, endBatch } = openQueue();
    const events: string[] = [];
    const deletions = [1n, 2n].map((id) =>
      queue.delete(id, deleteCall()).then((deleted) => events.push(`${id} ${deleted}`)),
    );
    const closed = queue.close().then(() => events.push("closed"));
    await expect(queue.delete(3n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    endBatch(0, [1]);
    await deletions[0];
    endBatch(1, [0]);
    await Promise.all([...deletions, closed]);
    expect(events).toEqual(["1 true", "2 false", "closed"]);
  });
});

type Step =
  | { readonly kind: "delete"; readonly count: number }
  | { readonly kind: "cancel" | "end" | "fail"; readonly which: number };

const step = oneof(
  { arbitrary: constant<Step>({ kind: "delete", count: 1 }), weight: 4 },
  record({ kind: constant("delete" as const), count: integer({ min: 1, max: 200 }) }),
  record({ kind: constantFrom("cancel" as const, "end" as const, "fail" as const), which: nat(50) }),
);

describe("the deletion queue under random steps", () => {
  test("sends each deletion at most once, in order, and settles it once", async () => {
    await assert(
      asyncProperty(
        array(step, { maxLength: 60 }),
        oneof(integer({ min: 1, max: 4 }), constant(150)),
        nat(2),
        async (steps, batchMax, more) => {
          const inFlightMax = 1 + more;
          const batches: {
            readonly pending: readonly Deletion[];
            readonly ids: readonly bigint[];
            readonly end: PromiseWithResolvers<FailedEnding | undefined>;
          }[] = [];
          const open = new Set<(typeof batches)[number]>();
          const commit: Backend["commit"] = (pending) => {
            const end = Promise.withResolvers<FailedEnding | undefined>();
            const batch = { pending, ids: pending.map(({ id }) => id), end };
            batches.push(batch);
            open.add(batch);
            expect(open.size).toBeLessThanOrEqual(inFlightMax);
            expect(batch.ids.length).toBeLessThanOrEqual(batchMax);
            return batch.end.promise;
          };
          const queue = openQueueOn(commit, { batchMax, waitingMax: 20_000, inFlightMax });
          const endOne = async (which: number, fails: boolean): Promise<void> => {
            const batch = [...open][which % Math.max(1, open.size)];
            if (batch === undefined) return;
            open.delete(batch);
            if (!fails) for (const one of batch.pending) one.decide(endings.deleted);
            batch.end.resolve(fails ? { kind: "unavailable", error: new Error("failed") } : undefined);
            await new Promise(setImmediate);
          };
          const calls: { readonly controller: AbortController; readonly outcome: Promise<string> }[] = [];
          for (const { kind, ...rest } of steps) {
            const which = "which" in rest ? rest.which : 0;
            if (kind === "delete") {
              const controller = new AbortController();
              const outcome = queue.delete(BigInt(calls.length), deleteCall({ signal: controller.signal }));
              calls.push({
                controller,
                outcome: outcome.then(
                  () => "deleted",
                  (reason: Error) => reason.message,
                ),
              });
            } else if (kind === "cancel")
              calls[which % Math.max(1, calls.length)]?.controller.abort(new Error("given up"));
            else await endOne(which, kind === "fail");
          }
          const closed = queue.close();
          while (open.size > 0) await endOne(0, false);
          await closed;

          const sent = batches.flatMap(({ ids }) => ids);
          expect(sent).toEqual(sent.toSorted((a, b) => Number(a - b)));
          expect(new Set(sent).size).toBe(sent.length);
          const outcomes = await Promise.all(calls.map((call) => call.outcome));
          const unsent = outcomes.filter((_, i) => !sent.includes(BigInt(i)));
          expect(unsent.filter((outcome) => outcome !== "given up")).toEqual([]);
          expect(outcomes.filter((outcome, i) => sent.includes(BigInt(i)) && outcome === "given up")).toEqual([]);
        },
      ),
    );
  });
});
