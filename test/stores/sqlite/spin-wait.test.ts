import { expect, test } from "vitest";
import { SpinWait } from "../../../src/stores/sqlite/spin-wait.ts";

/** Asks questions, each so many ms after the answer to the one before: lone deletions, except for one of several. */
function awakeAfter(afterMs: readonly number[], several?: number, spinMsMax = 0.15): number[] {
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

test.each<{ name: string; afterMs: readonly number[]; several?: number; awake: number[] }>([
  { name: "asleep after the first deletion", afterMs: [0], awake: [0] },
  { name: "awake for a caller that was back soon", afterMs: [0, 0.1], awake: [0, 0.15] },
  { name: "awake for one that was back while it woke up", afterMs: [0, 0.18], awake: [0, 0.15] },
  { name: "asleep for one that takes its time", afterMs: [0, 0.3], awake: [0, 0] },
  { name: "asleep once it was awake in vain", afterMs: [0, 0.1, 0.18, 0.18], awake: [0, 0.15, 0, 0.15] },
  { name: "asleep after a batch of several", afterMs: [0, 0.1, 0.1], several: 1, awake: [0, 0, 0.15] },
])("the storage thread is $name", ({ afterMs, several, awake }) => {
  expect(awakeAfter(afterMs, several)).toEqual(awake);
});

test("the storage thread is never awake where it has a core to share", () => {
  expect(awakeAfter([0, 0.01, 0.01], undefined, 0)).toEqual([0, 0, 0]);
});
