import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { BatchResult, Outcome, Requested } from "../../../src/stores/contract/backend.ts";
import { DeleteQueue, maxLockedMs } from "../../../src/stores/queue/delete-queue.ts";
import { deleteCall, fakeBackend, openQueueOn, type QueueOnOptions } from "../../support/plants/index.ts";

afterEach(() => void vi.useRealTimers());
const locked = "another transaction holds a lock on the plant, or uses the same idempotency key";

describe("an outcome", () => {
  test.each<{ outcome: Outcome; doubts: readonly string[]; errorCode: string; cause?: string | undefined }>([
    { outcome: "protected", doubts: [], errorCode: "ERR_PLANT_PROTECTED", cause: "why" },
    { outcome: "key-reused", doubts: [], errorCode: "ERR_IDEMPOTENCY_KEY_REUSED", cause: undefined },
    { outcome: "unavailable", doubts: [], errorCode: "ERR_STORE_UNAVAILABLE", cause: "why" },
    { outcome: "unavailable", doubts: ["token"], errorCode: "ERR_OUTCOME_UNKNOWN", cause: "why" },
    { outcome: "unknown", doubts: [], errorCode: "ERR_OUTCOME_UNKNOWN", cause: "why" },
    { outcome: "protected", doubts: ["token"], errorCode: "ERR_PLANT_PROTECTED", cause: "why" },
  ])(
    "$outcome with the doubts $doubts gets the error $errorCode, with its cause",
    async ({ outcome, doubts, errorCode, cause }) => {
      const queue = openQueueOn(async ([one]) => {
        one?.doubts.push(...doubts);
        return { outcomes: [outcome], causes: ["why"], failure: "a batch's reason" };
      });
      await expect(queue.delete(1n, deleteCall())).rejects.toMatchObject({ errorCode, cause });
    },
  );

  test("is unknown for deletions without one, and if a commit rejects", async () => {
    let commits = 0;
    const queue = openQueueOn(async () => {
      if (++commits === 2) throw new Error("a bug");
      return { outcomes: [] };
    });
    for (const _ of [1, 2])
      await expect(queue.delete(1n, deleteCall())).rejects.toMatchObject({ errorCode: "ERR_OUTCOME_UNKNOWN" });
    await queue.close();
  });

  test("is the reason of a cancelled call whose batch was unavailable", async () => {
    const controller = new AbortController();
    const queue = openQueueOn(async () => {
      controller.abort(new Error("too late"));
      return { outcomes: ["unavailable"], failure: "away" };
    });
    await expect(queue.delete(1n, deleteCall({ signal: controller.signal }))).rejects.toThrow("too late");
  });

  test("is unavailable for deletions that are queued when a problem is found", async () => {
    let problem: { text: string; isTemporary: boolean } | undefined;
    const first = Promise.withResolvers<BatchResult>();
    const backend = fakeBackend(() => first.promise);
    const queue = new DeleteQueue(
      {
        ...backend,
        get problem() {
          return problem;
        },
      },
      {},
    );
    const sent = queue.delete(1n, deleteCall());
    await new Promise(setImmediate);
    const deletions = [sent, queue.delete(2n, deleteCall())];
    problem = { text: "away", isTemporary: true };
    first.resolve({ outcomes: ["deleted"] });
    await expect(deletions[0]).resolves.toBe(true);
    await expect(deletions[1]).rejects.toMatchObject({ errorCode: "ERR_STORE_UNAVAILABLE", cause: "fake: away" });
  });
});

/** Opens a queue whose plants are locked until `unlock` returns true, and records its attempts. */
function openLocked(unlock: (one: Requested, attempts: number) => boolean, options: QueueOnOptions = {}) {
  const attempts: { readonly ids: readonly bigint[]; readonly deadlineMs: number; readonly atMs: number }[] = [];
  let running = 0;
  const queue = openQueueOn(async (batch, deadlineMs) => {
    expect(++running).toBeLessThanOrEqual(2);
    attempts.push({ ids: batch.map(({ id }) => id), deadlineMs, atMs: Date.now() });
    await new Promise(setImmediate);
    running--;
    return { outcomes: batch.map((one) => (unlock(one, attempts.length) ? "deleted" : "locked")) };
  }, options);
  return { queue, attempts };
}

describe("a locked plant", () => {
  test("is tried again until its first batch's deadline", async () => {
    const { queue, attempts } = openLocked((_, count) => count > 2);
    const deleting = queue.delete(7n, deleteCall());
    await expect.poll(() => queue.waiting).toEqual({ forBatch: 0, maxForBatch: 16_384, forLock: 1 });
    await expect(deleting).resolves.toBe(true);
    expect(queue.waiting.forLock).toBe(0);
    expect(attempts.map(({ ids }) => ids)).toEqual([[7n], [7n], [7n]]);
    expect(new Set(attempts.map(({ deadlineMs }) => deadlineMs)).size).toBe(1);
    // A timer may be a millisecond early.
    const [, second = { atMs: 0 }, third = { atMs: 0 }] = attempts;
    expect(third.atMs - second.atMs).toBeGreaterThanOrEqual(49);
  });

  test("delays no other deletion, even after an earlier lock was released", async () => {
    let isUnlocked = false;
    const { queue, attempts } = openLocked(({ id }) => id === 8n || isUnlocked);
    for (const id of [7n, 9n]) {
      isUnlocked = false;
      const deleting = queue.delete(id, deleteCall());
      await expect.poll(() => queue.waiting.forLock).toBe(1);
      await expect(queue.delete(8n, deleteCall())).resolves.toBe(true);
      isUnlocked = true;
      await expect(deleting).resolves.toBe(true);
    }
    expect(new Set(attempts.map(({ ids }) => String(ids)))).toEqual(new Set(["7", "8", "9"]));
  });

  test.each([
    ["refused", "ERR_QUEUE_FULL", 9n],
    ["unknown with a doubt", "ERR_OUTCOME_UNKNOWN", 2n],
  ])("is %s (%s) when maxWaiting others are locked", async (_name, errorCode, doubted) => {
    const options = { maxWaiting: 2 };
    const { queue } = openLocked((one, count) => {
      if (one.id === doubted) one.doubts.push("token");
      return count > 3;
    }, options);
    const first = queue.delete(0n, deleteCall());
    await new Promise(setImmediate);
    const others = [1n, 2n].map((id) => queue.delete(id, deleteCall()));
    await expect(others[1]).rejects.toMatchObject({ errorCode });
    await expect(Promise.all([first, others[0]])).resolves.toEqual([true, true]);
    await queue.close();
  });

  test.each([
    ["is unavailable", 0, [maxLockedMs], "ERR_STORE_UNAVAILABLE"],
    ["is unknown with a doubt", 1, [maxLockedMs], "ERR_OUTCOME_UNKNOWN"],
    // A doubt that is added later starts the two seconds again.
    ["is unknown with a new doubt", 2, [maxLockedMs - 1, maxLockedMs - 1, maxLockedMs], "ERR_OUTCOME_UNKNOWN"],
  ])("%s after two seconds", async (_name, doubts, waitsMs, errorCode) => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { queue, attempts } = openLocked((one, count) => {
      if (count <= doubts) one.doubts.push(`token ${count}`);
      return false;
    });
    const failed = expect(queue.delete(7n, deleteCall())).rejects.toMatchObject({ errorCode, cause: locked });
    for (const [i, waitMs] of waitsMs.entries()) {
      // Waits without expect.poll(), which would advance the fake clock.
      while (attempts.length <= i) await new Promise(setImmediate);
      await new Promise(setImmediate);
      vi.advanceTimersByTime(waitMs);
    }
    await failed;
    expect(attempts).toHaveLength(waitsMs.length);
    await queue.close();
  });

  test("is not tried again without a second until its first batch's deadline", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { queue, attempts } = openLocked(() => {
      vi.advanceTimersByTime(9_001);
      return false;
    });
    const cause = "the deadline passed after the plant was locked";
    await expect(queue.delete(7n, deleteCall())).rejects.toMatchObject({ cause });
    expect(attempts).toHaveLength(1);
  });

  test("is retried in small batches until its deadline is near", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const sizes: number[] = [];
    let isUnlocked = false;
    const queue = openQueueOn(async (batch) => {
      if (isUnlocked && sizes.push(batch.length)) vi.advanceTimersByTime(3_000);
      return { outcomes: batch.map(() => (isUnlocked ? "deleted" : "locked")) };
    });
    const deleting = Promise.allSettled(Array.from({ length: 400 }, (_, id) => queue.delete(BigInt(id), deleteCall())));
    while (queue.waiting.forLock < 400) await new Promise(setImmediate);
    isUnlocked = true;
    const statuses = (await deleting).map(({ status }) => status);
    expect(sizes).toEqual([64, 64, 64]);
    expect(statuses.filter((status) => status === "fulfilled")).toHaveLength(3 * 64);
  });

  test("is tried again if found locked during long retries of others", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const attempts = new Map([7n, 8n].map((id) => [id, 0]));
    let second: Promise<boolean> | undefined;
    const queue = openQueueOn(async ([one]) => {
      const id = one?.id ?? 0n;
      const count = (attempts.get(id) ?? 0) + 1;
      attempts.set(id, count);
      if (id === 7n && count === 2) {
        vi.advanceTimersByTime(1);
        second = queue.delete(8n, deleteCall());
        while (queue.waiting.forLock < 2) await new Promise(setImmediate);
        vi.advanceTimersByTime(maxLockedMs + 500);
      }
      return { outcomes: [count === 1 ? "locked" : "deleted"] };
    });
    await expect(queue.delete(7n, deleteCall())).resolves.toBe(true);
    await expect(second).resolves.toBe(true);
  });

  test("is not tried again once its call is cancelled", async () => {
    const { queue, attempts } = openLocked(() => false);
    const controller = new AbortController();
    const deleting = queue.delete(7n, deleteCall({ signal: controller.signal }));
    await expect.poll(() => queue.waiting.forLock).toBe(1);
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    const before = attempts.length;
    await expect(deleting).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(attempts.length).toBeLessThanOrEqual(before + 1);
    await queue.close();
  });

  test("is settled before the queue is closed", async () => {
    const { queue } = openLocked((_, count) => count > 1);
    const events: string[] = [];
    const deleting = queue.delete(7n, deleteCall()).then(() => events.push("deleted"));
    await queue.close().then(() => events.push("closed"));
    await deleting;
    expect(events).toEqual(["deleted", "closed"]);
  });
});
