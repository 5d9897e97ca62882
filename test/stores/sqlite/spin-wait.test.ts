import { expect, test } from "vitest";
import { SpinWait } from "../../../src/stores/sqlite/spin-wait.ts";

/**
 * Sends requests, each this many milliseconds after the reply to the previous one. All are single deletions, except for
 * the one with the index `several`.
 */
function spinsAfter(afterMs: readonly number[], several?: number, spinMsMax = 0.15): number[] {
  const spinWait = new SpinWait(spinMsMax);
  let nowMs = 0;
  return afterMs.map((ms, index) => {
    nowMs += ms;
    spinWait.requested(index !== several, nowMs);
    nowMs += 1;
    spinWait.replied(nowMs);
    return spinWait.spinMs;
  });
}

test.each<{ name: string; afterMs: readonly number[]; several?: number; spins: number[] }>([
  { name: "does not spin after the first deletion", afterMs: [0], spins: [0] },
  { name: "spins for a caller that sends the next request soon", afterMs: [0, 0.1], spins: [0, 0.15] },
  { name: "spins for a caller whose request came while it woke up", afterMs: [0, 0.18], spins: [0, 0.15] },
  { name: "does not spin for a slow caller", afterMs: [0, 0.3], spins: [0, 0] },
  { name: "does not spin after spinning without a request", afterMs: [0, 0.1, 0.18, 0.18], spins: [0, 0.15, 0, 0.15] },
  { name: "does not spin after a batch of several deletions", afterMs: [0, 0.1, 0.1], several: 1, spins: [0, 0, 0.15] },
])("the storage thread $name", ({ afterMs, several, spins }) => {
  expect(spinsAfter(afterMs, several)).toEqual(spins);
});

test("the storage thread never spins on a single core", () => {
  expect(spinsAfter([0, 0.01, 0.01], undefined, 0)).toEqual([0, 0, 0]);
});
