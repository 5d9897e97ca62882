import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createRateLimit } from "../src/rate-limit.ts";

/** A limit of ten calls a second on a clock that the test moves. */
function openLimit(): { readonly clock: { nowMs: number }; taken: (key: string, calls: number) => number } {
  const clock = { nowMs: 1_000_000 };
  const limit = createRateLimit({ name: "test", callsPerSecond: 10, nowMs: () => clock.nowMs });
  const isTaken = (key: string): boolean => {
    try {
      limit.take(key);
      return true;
    } catch (reason) {
      if (reason instanceof ConnectError && reason.code === Code.ResourceExhausted) return false;
      throw reason;
    }
  };
  return { clock, taken: (key, calls) => Array.from({ length: calls }, () => isTaken(key)).filter(Boolean).length };
}

test("the calls of a second may come at once, and no more", () => {
  expect(openLimit().taken("a", 30)).toBe(10);
});

test.each([
  { waitMs: 99, calls: 0 },
  { waitMs: 100, calls: 1 },
  { waitMs: 550, calls: 5 },
  { waitMs: 1000, calls: 10 },
  { waitMs: 3_600_000, calls: 10 },
])("$waitMs ms after they are used up there are $calls again", ({ waitMs, calls }) => {
  const { clock, taken } = openLimit();
  taken("a", 10);
  clock.nowMs += waitMs;
  expect(taken("a", 30)).toBe(calls);
});

test("a caller that calls as often as it may for an hour is never refused", () => {
  const { clock, taken } = openLimit();
  taken("a", 9);
  const hourly = Array.from({ length: 36_000 }, () => {
    clock.nowMs += 100;
    return taken("a", 1);
  });
  expect(hourly).not.toContain(0);
});

test("a caller that goes on while it is refused is not refused for longer", () => {
  const { clock, taken } = openLimit();
  taken("a", 1000);
  clock.nowMs += 100;
  expect(taken("a", 10)).toBe(1);
});

test("a clock that stands still or goes back gives nothing away", () => {
  const { clock, taken } = openLimit();
  taken("a", 10);
  clock.nowMs -= 60_000;
  expect(taken("a", 10)).toBe(0);
});

test("keys have their calls each for itself", () => {
  const { taken } = openLimit();
  expect([taken("a", 11), taken("b", 11)]).toEqual([10, 10]);
});

test("of more keys than are remembered the one that was used last is kept", () => {
  const { taken } = openLimit();
  taken("first", 10);
  taken("second", 10);
  for (let key = 0; key < 99_998; key++) taken(`key ${key}`, 1);
  expect(taken("first", 1)).toBe(0);
  taken("second", 1);
  // One more: "first" was only asked about, and is the one to forget.
  taken("one more", 1);
  expect([taken("second", 1), taken("first", 1)]).toEqual([0, 1]);
});

test("of more keys than are remembered the one that was let through last is kept", () => {
  const { taken } = openLimit();
  taken("first", 9);
  taken("second", 10);
  for (let key = 0; key < 99_998; key++) taken(`key ${key}`, 1);
  taken("first", 1);
  taken("one more", 1);
  expect([taken("first", 1), taken("second", 1)]).toEqual([0, 1]);
});

test.each([
  { callsPerSecond: 1, calls: 1, policy: "q=1;w=1", waitS: 1 },
  { callsPerSecond: 2.5, calls: 2, policy: "q=2;w=1", waitS: 1 },
  { callsPerSecond: 0.1, calls: 1, policy: "q=1;w=10", waitS: 10 },
])("a refusal of more than $callsPerSecond a second says when the next call may come", (row) => {
  const { callsPerSecond, calls, policy, waitS } = row;
  const slow = createRateLimit({ name: "address", callsPerSecond, nowMs: () => 0 });
  for (let call = 0; call < calls; call++) slow.take("a");
  expect(() => slow.take("a")).toThrow(
    expect.objectContaining({
      rawMessage: `too many calls: the address limit is ${callsPerSecond} per second`,
      code: Code.ResourceExhausted,
      errorCode: "ERR_RATE_LIMITED",
      metadata: new Headers({
        "retry-after": String(waitS),
        "ratelimit-policy": `"address";${policy}`,
        ratelimit: `"address";r=0;t=${waitS}`,
      }),
    }),
  );
});
