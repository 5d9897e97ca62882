import { Code, ConnectError } from "@connectrpc/connect";
import { array, assert, asyncProperty, constant, constantFrom, integer, nat, oneof, record } from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { BatchResult, Outcome, Requested } from "../../../src/stores/contract/backend.ts";
import { maxWaitMs } from "../../../src/stores/queue/delete-queue.ts";
import type { OnBatch } from "../../../src/stores/index.ts";
import { type Commit, deleteCall, openQueueOn, type QueueOnOptions, refusalOf } from "../../support/plants/index.ts";

afterEach(() => void vi.useRealTimers());

/** Resolves at the end of the event-loop turn, when the queue has sent what arrived in it. */
const turn = (): Promise<unknown> => new Promise(setImmediate);

/** Opens a queue whose batches stay in flight until the test resolves them. */
function openQueue(options: QueueOnOptions = {}) {
  const sent: { readonly batch: readonly Requested[]; readonly end: PromiseWithResolvers<BatchResult> }[] = [];
  const queue = openQueueOn((batch) => {
    const end = Promise.withResolvers<BatchResult>();
    sent.push({ batch, end });
    return end.promise;
  }, options);
  return {
    queue,
    endBatch: (index: number, outcomes: readonly number[]): void =>
      sent[index]?.end.resolve({ outcomes: outcomes.map((one) => (one === 1 ? "deleted" : "absent")) }),
    sentIds: () => sent.map(({ batch }) => batch.map(({ id }) => id)),
    failBatch: (index: number, failure: unknown, outcome: Outcome = "unavailable") =>
      sent[index]?.end.resolve({ outcomes: sent[index].batch.map(() => outcome), failure }),
  };
}

/** Opens a queue like {@link openQueue} whose next batch may have 256 deletions. */
async function openUsedQueue(options: QueueOnOptions = {}) {
  const opened = openQueue(options);
  let batches = 0;
  const deletions = idsFrom(1_000, 1_000).map((id) => opened.queue.delete(id, deleteCall()));
  await turn();
  for (; batches < opened.sentIds().length; batches++) {
    opened.endBatch(batches, Array<number>(1_000).fill(1));
    await turn();
  }
  await Promise.all(deletions);
  const endBatch = (index: number, outcomes: readonly number[]) => opened.endBatch(batches + index, outcomes);
  return { ...opened, endBatch };
}

const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, i) => BigInt(first + i));

describe("the deletion queue", () => {
  test("reports each sent and settled batch, and the number of waiting deletions", async () => {
    const batches: unknown[] = [];
    const onBatch: OnBatch = (calls) => {
      batches.push(calls.length);
      return (error) => batches.push(error);
    };
    const { queue, endBatch, failBatch } = openQueue({ onBatch });
    const first = queue.delete(1n, deleteCall());
    await turn();
    const deletions = [first, ...[2n, 3n].map((id) => queue.delete(id, deleteCall()))];
    expect({ batches, waiting: queue.waiting.forBatch }).toEqual({ batches: [1], waiting: 2 });
    endBatch(0, [1]);
    await deletions[0];
    expect({ batches, waiting: queue.waiting.forBatch }).toEqual({ batches: [1, undefined, 2], waiting: 0 });
    failBatch(1, "away");
    const failure = { code: Code.Unavailable, errorCode: "ERR_STORE_UNAVAILABLE", cause: "away" };
    await expect(deletions[1]).rejects.toMatchObject(failure);
    await expect(deletions[2]).rejects.toMatchObject(failure);
    expect(batches).toEqual([1, undefined, 2, expect.objectContaining(failure)]);
  });

  test("sends the deletions of an event-loop turn together, without a timer", async () => {
    const { queue, endBatch, sentIds } = openQueue({ maxInFlight: 2 });
    const deletions = [1n, 2n].map((id) => queue.delete(id, deleteCall()));
    await turn();
    expect(sentIds()).toEqual([[1n, 2n]]);
    // Callers that continue after a batch arrive in one turn, too.
    const next = deletions.map((deletion, i) => deletion.then(() => queue.delete(BigInt(3 + i), deleteCall())));
    endBatch(0, [1, 1]);
    await Promise.all(deletions);
    await turn();
    expect(sentIds()).toEqual([
      [1n, 2n],
      [3n, 4n],
    ]);
    endBatch(1, [1, 1]);
    await Promise.all(next);
  });

  test("collects the deletions that arrive during a batch, in order", async () => {
    const { queue, endBatch, sentIds } = openQueue();
    const first = queue.delete(1n, deleteCall());
    await turn();
    const others = [5n, 3n, 4n].map((id) => queue.delete(id, deleteCall()));
    endBatch(0, [1]);
    await expect(first).resolves.toBe(true);
    endBatch(1, [1, 0, 1]);
    await expect(Promise.all(others)).resolves.toEqual([true, false, true]);
    expect(sentIds()).toEqual([[1n], [5n, 3n, 4n]]);
  });

  test("doubles its batches from 64 to 1,024 deletions, and halves slow ones", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const sizes: number[] = [];
    const queue = openQueueOn(async (batch) => {
      sizes.push(batch.length);
      if (sizes.length === 8) vi.advanceTimersByTime(2_001);
      return { outcomes: batch.map(() => "deleted") };
    });
    await Promise.all(idsFrom(0, 5_000).map((id) => queue.delete(id, deleteCall())));
    expect(sizes).toEqual([64, 128, 256, 512, 1_024, 1_024, 1_024, 968]);
  });

  test("shrinks batches below 64 deletions while they stay slow", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const sizes: number[] = [];
    const queue = openQueueOn(async (batch) => {
      sizes.push(batch.length);
      vi.advanceTimersByTime(100 * batch.length);
      return { outcomes: batch.map(() => "deleted") };
    });
    await Promise.all(idsFrom(0, 200).map((id) => queue.delete(id, deleteCall())));
    expect(sizes.slice(0, 6)).toEqual([64, 32, 16, 32, 16, 32]);
  });

  test("sends at most maxInFlight batches concurrently", async () => {
    const { queue, sentIds } = openQueue({ maxInFlight: 2 });
    for (const id of [1n, 2n, 3n]) {
      void queue.delete(id, deleteCall());
      await turn();
    }
    expect(sentIds()).toEqual([[1n], [2n]]);
  });

  test("refuses deletions above its limit with a retry time", async () => {
    const { queue, sentIds } = openQueue({ maxWaiting: 1 });
    void queue.delete(1n, deleteCall());
    await turn();
    void queue.delete(2n, deleteCall());
    const refused = await refusalOf(queue.delete(3n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.ResourceExhausted });
    expect(refused.metadata.get("retry-after")).toBe("1");
    expect(sentIds()).toEqual([[1n]]);
  });

  test.each([
    { verb: "refuses", name: "the oldest has waited over a second", waitedMs: maxWaitMs + 1, isRefused: true },
    { verb: "accepts", name: "the oldest has waited a second", waitedMs: maxWaitMs },
    { verb: "accepts", name: "a failed batch took over a second", waitedMs: 9_000, fails: true },
  ])("$verb new deletions when $name at the end of a batch", async ({ waitedMs, isRefused = false, fails = false }) => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { queue, endBatch, failBatch } = openQueue();
    const first = queue.delete(1n, deleteCall()).catch(() => true);
    await turn();
    const second = queue.delete(2n, deleteCall());
    vi.advanceTimersByTime(waitedMs);
    if (fails) failBatch(0, "away");
    else endBatch(0, [1]);
    await first;
    const third = queue.delete(3n, deleteCall());
    if (isRefused) expect(await refusalOf(third)).toMatchObject({ errorCode: "ERR_QUEUE_FULL" });
    endBatch(1, [1]);
    await second;
    // Nothing waits any longer, so the next deletion is accepted.
    const last = isRefused ? queue.delete(4n, deleteCall()) : third;
    await turn();
    endBatch(2, [1]);
    await expect(last).resolves.toBe(true);
  });

  test("accepts deletions again when every late one was cancelled", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { queue, endBatch, sentIds } = openQueue();
    const first = queue.delete(1n, deleteCall());
    await turn();
    const controller = new AbortController();
    const cancelled = queue.delete(2n, deleteCall({ signal: controller.signal }));
    vi.advanceTimersByTime(maxWaitMs + 1);
    controller.abort(new Error("given up"));
    endBatch(0, [1]);
    await first;
    await expect(cancelled).rejects.toThrow("given up");
    const last = queue.delete(3n, deleteCall());
    await turn();
    endBatch(1, [1]);
    await expect(last).resolves.toBe(true);
    expect(sentIds()).toEqual([[1n], [3n]]);
  });

  test.each(["s".repeat(1_025), "a\0b", "a\uD83Cb"])(
    "refuses an idempotency key for the subject %j, which cannot be recorded",
    async (subject) => {
      const { queue, sentIds } = openQueue();
      const refused = await refusalOf(queue.delete(1n, deleteCall({ subject, idempotencyKey: "key" })));
      expect(refused).toMatchObject({ code: Code.FailedPrecondition, errorCode: "ERR_SUBJECT_NOT_RECORDABLE" });
      void queue.delete(2n, deleteCall({ subject }));
      await turn();
      expect(sentIds()).toEqual([[2n]]);
    },
  );

  test("rejects a cancelled queued call with its reason, and never sends it", async () => {
    const { queue, endBatch, sentIds } = openQueue();
    const first = queue.delete(1n, deleteCall());
    await turn();
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
    await turn();
    const failure = queue.delete(2n, deleteCall({ signal: AbortSignal.abort(new Error("gone")) }));
    endBatch(0, [1]);
    await expect(failure).rejects.toThrow("gone");
    expect(sentIds()).toEqual([[1n]]);
  });

  test("never sends a call that is cancelled in its event-loop turn", async () => {
    const { queue, sentIds } = openQueue();
    const controllers = [1n, 2n].map(() => new AbortController());
    const failures = controllers.map(({ signal }, i) => queue.delete(BigInt(i), deleteCall({ signal })));
    void queue.delete(2n, deleteCall());
    for (const controller of controllers) controller.abort(new Error("given up"));
    for (const failure of failures) await expect(failure).rejects.toThrow("given up");
    expect(sentIds()).toEqual([[2n]]);
  });

  test("resolves a sent call with its outcome even if it is cancelled", async () => {
    const { queue, endBatch } = openQueue();
    const controller = new AbortController();
    const sent = queue.delete(1n, deleteCall({ signal: controller.signal }));
    await turn();
    controller.abort();
    endBatch(0, [1]);
    await expect(sent).resolves.toBe(true);
  });

  test("rejects every call in a failed batch with the reason, and continues", async () => {
    const { queue, endBatch, failBatch } = openQueue();
    const first = queue.delete(1n, deleteCall());
    await turn();
    const second = queue.delete(2n, deleteCall());
    failBatch(0, "away");
    await expect(first).rejects.toMatchObject({ code: Code.Unavailable });
    endBatch(1, [1]);
    await expect(second).resolves.toBe(true);
  });

  test("settles a large batch in order without blocking the event loop", async () => {
    const { queue, endBatch } = await openUsedQueue();
    const settledIds: bigint[] = [];
    const remove = (id: bigint) => queue.delete(id, deleteCall()).then((deleted) => deleted && settledIds.push(id));
    const first = remove(0n);
    await turn();
    const ids = idsFrom(1, 200);
    const calls = ids.map(remove);
    endBatch(0, [1]);
    await first;
    endBatch(1, Array<number>(200).fill(1));
    const settledByTurn: number[] = [];
    const settledWhenClosed = queue.close().then(() => settledIds.length);
    while (settledIds.length <= ids.length) {
      await turn();
      settledByTurn.push(settledIds.length);
    }
    await Promise.all(calls);
    expect(await settledWhenClosed).toBe(201);
    expect(settledByTurn).toEqual([65, 129, 193, 201]);
    expect(settledIds).toEqual([0n, ...ids]);
  });

  test("closes only after an earlier large batch is settled", async () => {
    const { queue, endBatch } = await openUsedQueue({ maxInFlight: 2 });
    const remove = (id: bigint): Promise<boolean> => queue.delete(id, deleteCall());
    const first = remove(0n);
    await turn();
    const second = remove(1n);
    await turn();
    const settled: bigint[] = [];
    const many = idsFrom(2, 200).map((id) => remove(id).then(() => settled.push(id)));
    endBatch(0, [1]);
    await first;
    const last = remove(300n);
    await turn();
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
    const remove = (id: bigint) => queue.delete(id, deleteCall()).then((deleted) => events.push(`${id} ${deleted}`));
    const first = remove(1n);
    await turn();
    const deletions = [first, remove(2n)];
    const closed = queue.close().then(() => events.push("closed"));
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
  test("sends each deletion at most once, in order, and settles it once", async () =>
    await assert(
      asyncProperty(array(step, { maxLength: 60 }), nat(2), async (steps, more) => {
        const maxInFlight = 1 + more;
        const batches: { readonly ids: readonly bigint[]; readonly end: PromiseWithResolvers<BatchResult> }[] = [];
        const open = new Set<(typeof batches)[number]>();
        const commit: Commit = (requested) => {
          const end = Promise.withResolvers<BatchResult>();
          const batch = { ids: requested.map(({ id }) => id), end };
          batches.push(batch);
          open.add(batch);
          expect(open.size).toBeLessThanOrEqual(maxInFlight);
          return batch.end.promise;
        };
        const queue = openQueueOn(commit, { maxWaiting: 20_000, maxInFlight });
        const endOne = async (which: number, fails: boolean): Promise<void> => {
          const batch = [...open][which % Math.max(1, open.size)];
          if (batch === undefined) return void (await turn());
          open.delete(batch);
          const outcomes = batch.ids.map(() => (fails ? ("unknown" as const) : ("deleted" as const)));
          batch.end.resolve({ outcomes, failure: fails ? "failed" : undefined });
          await turn();
        };
        const calls: { readonly controller: AbortController; readonly outcome: Promise<string> }[] = [];
        for (const { kind, ...rest } of steps) {
          const which = "which" in rest ? rest.which : 0;
          if (kind === "delete") {
            const controller = new AbortController();
            const outcome = queue.delete(BigInt(calls.length), deleteCall({ signal: controller.signal }));
            const settled = outcome.then(() => "deleted");
            calls.push({ controller, outcome: settled.catch((reason: Error) => reason.message) });
          } else if (kind === "cancel")
            calls[which % Math.max(1, calls.length)]?.controller.abort(new Error("given up"));
          else await endOne(which, kind === "fail");
        }
        const closed = queue.close();
        await turn();
        while (open.size > 0) await endOne(0, false);
        await closed;
        const sent = batches.flatMap(({ ids }) => ids);
        expect(sent).toEqual(sent.toSorted((a, b) => Number(a - b)));
        expect(new Set(sent).size).toBe(sent.length);
        const outcomes = await Promise.all(calls.map((call) => call.outcome));
        const unsent = outcomes.filter((_, i) => !sent.includes(BigInt(i)));
        expect(unsent.filter((outcome) => outcome !== "given up")).toEqual([]);
        expect(outcomes.filter((outcome, i) => sent.includes(BigInt(i)) && outcome === "given up")).toEqual([]);
      }),
    ));
});
