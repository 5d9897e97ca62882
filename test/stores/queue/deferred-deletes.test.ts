import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Deletion, type Ending, endings, type FailedEnding } from "../../../src/stores/contract/deletion.ts";
import { deferredMsMax, DeferredDeletes } from "../../../src/stores/queue/deferred-deletes.ts";
import { within } from "../../../protoport/testing/src/deadline.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { fakeBackend } from "../../support/plants/fake-store.ts";

const never = Number.POSITIVE_INFINITY;

/** The pause between two attempts, in milliseconds. A timer may be a millisecond early. */
const pauseMsMin = 49;

afterEach(() => void vi.useRealTimers());

/** A locked deletion, and its outcome. */
function lockedDelete(
  id: bigint,
  { signal, token }: { readonly signal?: AbortSignal; readonly token?: string | undefined } = {},
): { readonly pending: Deletion; readonly outcome: Promise<boolean> } {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  promise.catch(() => undefined);
  const pending = new Deletion(id, deleteCall(signal && { signal }), resolve, reject);
  pending.send();
  if (token !== undefined) pending.doubt(token);
  pending.defer();
  return { pending, outcome: promise };
}

function deleteAll(batch: readonly Deletion[]): void {
  for (const one of batch) one.decide(endings.deleted);
}

/** Opens locked deletions, and records the batches in which they are attempted. */
function openLocked(
  commit: (batch: readonly Deletion[]) => FailedEnding | void,
  { batchMax = 100, waitingMax = 100 }: { batchMax?: number; waitingMax?: number } = {},
) {
  const attempts: (readonly bigint[])[] = [];
  const limitsMs: number[] = [];
  let running = 0;
  const backend = fakeBackend(
    async (batch, { deadlineMs, isCareful }) => {
      expect(isCareful).toBe(true);
      attempts.push(batch.map(({ id }) => id));
      limitsMs.push(deadlineMs);
      // Batches run one after the other on a single connection.
      expect(++running).toBe(1);
      await Promise.resolve();
      running--;
      return commit(batch) ?? undefined;
    },
    { attemptMsMin: 1_000 },
  );
  const locked: DeferredDeletes = new DeferredDeletes(backend, batchMax, waitingMax);
  return { locked, attempts, limitsMs };
}

describe("deletions of locked plants", () => {
  test("are attempted in batches of limited size, and get separate outcomes", async () => {
    const waiting: number[] = [];
    const commit = (batch: readonly Deletion[]): void => {
      waiting.push(locked.waiting);
      for (const one of batch) one.decide(one.id === 2n ? endings.absent : endings.deleted);
    };
    const { locked, attempts } = openLocked(commit, { batchMax: 2 });
    expect(locked).toMatchObject({ isEmpty: true, waiting: 0 });
    const deletions = [1n, 2n, 3n].map((id) => lockedDelete(id));
    for (const { pending } of deletions) locked.add(pending, never);
    expect(locked.isEmpty).toBe(false);
    await expect(Promise.all(deletions.map(({ outcome }) => outcome))).resolves.toEqual([true, false, true]);
    expect(attempts).toEqual([[1n, 2n], [3n]]);
    // Deletions count as waiting for a lock while they are attempted.
    expect(waiting).toEqual([3, 3]);
    await locked.close();
    expect(locked).toMatchObject({ isEmpty: true, waiting: 0 });
  });

  test("with different tokens are attempted in separate batches", async () => {
    const { locked, attempts } = openLocked(deleteAll);
    const tokens = [undefined, "a", "b", "a"];
    const deletions = tokens.map((token, i) => lockedDelete(BigInt(i + 1), { token }));
    for (const { pending } of deletions) locked.add(pending, never);
    await locked.close();
    expect(attempts).toEqual([[1n], [2n, 4n], [3n]]);
  });

  test("are refused with RESOURCE_EXHAUSTED when waitingMax deletions wait", async () => {
    const { locked, attempts } = openLocked(deleteAll, { waitingMax: 1 });
    const [first, second] = [lockedDelete(1n), lockedDelete(2n)];
    locked.add(first.pending, never);
    locked.add(second.pending, never);
    await expect(second.outcome).rejects.toMatchObject({ code: Code.ResourceExhausted });
    await expect(first.outcome).resolves.toBe(true);
    expect(attempts).toEqual([[1n]]);
  });

  test("are not refused when they are deferred again while waitingMax deletions wait", async () => {
    const { locked, attempts } = openLocked(
      (batch) => {
        for (const one of batch)
          if (attempts.length === 1) one.defer();
          else one.decide(endings.deleted);
      },
      { waitingMax: 1 },
    );
    const { pending, outcome } = lockedDelete(1n);
    locked.add(pending, never);
    await expect(outcome).resolves.toBe(true);
    expect(attempts).toEqual([[1n], [1n]]);
  });

  test("fail after two seconds even if they are deferred again", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    let attempted = Promise.withResolvers<void>();
    const attemptedMs: number[] = [];
    const { locked } = openLocked((batch) => {
      attemptedMs.push(Date.now());
      attempted.resolve();
      for (const one of batch) one.defer();
    });
    // Waits without expect.poll(), which would advance the fake clock.
    const nextAttempt = async (): Promise<void> => {
      attempted = Promise.withResolvers();
      await within(attempted.promise, "an attempt");
    };
    const { pending, outcome } = lockedDelete(1n);
    locked.add(pending, never);
    await nextAttempt();
    vi.advanceTimersByTime(deferredMsMax - 1);
    await nextAttempt();
    vi.advanceTimersByTime(1);
    await expect(outcome).rejects.toMatchObject({
      rawMessage: "the plant store cannot process the request at the moment",
      cause: "another transaction holds a lock on the plant, or uses the same idempotency key",
    });
    const [first = 0, second = 0] = attemptedMs;
    expect(second - first).toBeGreaterThanOrEqual(pauseMsMin);
    await locked.close();
  });

  test("wait for another two seconds once they are in doubt", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { locked, attempts } = openLocked(([one]) => {
      // The second and the third attempt have the same token, which does not start two seconds again.
      one?.doubt("token");
      one?.defer();
      vi.advanceTimersByTime(deferredMsMax - 1);
    });
    const { pending, outcome } = lockedDelete(1n);
    locked.add(pending, never);
    await expect(outcome).rejects.toMatchObject({
      rawMessage: "the outcome of the deletion is unknown; repeating the request is safe",
    });
    await locked.close();
    expect(attempts).toHaveLength(3);
  });

  test("keep their deadline once they are in doubt", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { locked, attempts } = openLocked(([one]) => {
      one?.doubt("token");
      one?.defer();
      vi.advanceTimersByTime(1);
    });
    const { pending, outcome } = lockedDelete(1n);
    // An attempt needs a second.
    locked.add(pending, performance.now() + 1_001);
    await expect(outcome).rejects.toMatchObject({
      rawMessage: "the outcome of the deletion is unknown; repeating the request is safe",
    });
    expect(attempts).toHaveLength(1);
  });

  test("fail at their deadline, which also limits their attempts", async () => {
    const { locked, attempts, limitsMs } = openLocked(deleteAll);
    const [late, short, first, second] = [lockedDelete(1n), lockedDelete(4n), lockedDelete(2n), lockedDelete(3n)];
    const deadlineMs = performance.now() + 60_000;
    locked.add(late.pending, 0);
    // 900 ms are too short for an attempt: the batch would be cancelled with an unknown outcome.
    locked.add(short.pending, performance.now() + 900);
    locked.add(first.pending, deadlineMs + 1);
    locked.add(second.pending, deadlineMs);
    for (const { outcome } of [late, short])
      await expect(outcome).rejects.toMatchObject({
        cause: "another transaction holds a lock on the plant, or uses the same idempotency key",
      });
    await locked.close();
    expect(attempts).toEqual([[2n, 3n]]);
    expect(limitsMs).toEqual([deadlineMs]);
  });

  test("are rejected with the abort reason when the call is cancelled", async () => {
    const { locked, attempts } = openLocked(deleteAll);
    const gone = lockedDelete(1n, {
      signal: AbortSignal.abort(new ConnectError("too late", Code.DeadlineExceeded)),
    });
    const here = lockedDelete(2n);
    for (const { pending } of [gone, here]) locked.add(pending, never);
    await expect(gone.outcome).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(here.outcome).resolves.toBe(true);
    expect(attempts).toEqual([[2n]]);
  });

  test("fail with their attempt's error, and later deletions are attempted", async () => {
    const { locked } = openLocked((batch) => {
      if (batch[0]?.id === 1n) return endings.unavailable("gone");
      return deleteAll(batch);
    });
    const first = lockedDelete(1n);
    locked.add(first.pending, never);
    await expect(first.outcome).rejects.toMatchObject({ cause: "gone" });
    await locked.close();
    const second = lockedDelete(2n);
    locked.add(second.pending, never);
    await expect(second.outcome).resolves.toBe(true);
  });
});

describe("a deletion in doubt", () => {
  const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

  test.each<{ ending: Ending; expected: string }>([
    { ending: endings.unavailable("away"), expected: unknown },
    { ending: endings.queueFull(), expected: unknown },
    { ending: endings.outcomeUnknown("lost"), expected: unknown },
    { ending: endings.cancelled(new ConnectError("too late", Code.DeadlineExceeded)), expected: "too late" },
  ])('that ends as $ending.kind gets the error "$expected"', async ({ ending, expected }) => {
    const { pending, outcome } = lockedDelete(1n, { token: "token" });
    pending.end(ending);
    await expect(outcome).rejects.toMatchObject({ rawMessage: expected });
  });

  test("gets the outcome of its next attempt", async () => {
    const { pending, outcome } = lockedDelete(1n, { token: "token" });
    pending.send();
    pending.end(endings.deleted);
    await expect(outcome).resolves.toBe(true);
  });
});
