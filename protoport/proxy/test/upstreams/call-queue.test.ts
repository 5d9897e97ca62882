import type { ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallQueue, type PendingCall } from "../../src/upstreams/call-queue.ts";
import { upstreamLimits } from "../../src/upstreams/index.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Returns a call that records its refusals. */
function createCall(refused: string[]): PendingCall {
  return {
    waitsForReady: true,
    begin: () => expect.unreachable(),
    refuse: ({ rawMessage }: ConnectError) => void refused.push(rawMessage),
  };
}

const timedOut = "the call timed out waiting for a stream to the server";

test("the queue timeout restarts whenever no server serves", () => {
  const refused: string[] = [];
  const queue = new CallQueue({ ...upstreamLimits, queueTimeoutMs: 1_000 }, "orders.example");
  queue.add(createCall(refused));
  const check = (isServing: boolean): number => {
    vi.advanceTimersByTime(600);
    queue.refuseTimedOut(isServing);
    return refused.length;
  };
  // Each time that no server serves, the timeout starts again.
  expect([false, false, true, true, false, true, true].map(check)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  expect(check(true)).toBe(1);
  expect(refused).toEqual([timedOut]);
  expect(queue.refusals).toMatchObject({ queue_timeout: 1 });
});

test("each queued call times out queueTimeoutMs after it was added", () => {
  const refused: string[][] = [[], []];
  const queue = new CallQueue({ ...upstreamLimits, queueTimeoutMs: 1_000 }, "orders.example");
  queue.refuseTimedOut(true);
  for (const each of refused) {
    vi.advanceTimersByTime(500);
    queue.add(createCall(each));
  }
  vi.advanceTimersByTime(999);
  queue.refuseTimedOut(true);
  expect(refused).toEqual([[timedOut], []]);
  vi.advanceTimersByTime(1);
  queue.refuseTimedOut(true);
  expect(refused).toEqual([[timedOut], [timedOut]]);
  expect(queue.size).toBe(0);
});
