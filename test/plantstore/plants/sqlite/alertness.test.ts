import { expect, test } from "vitest";
import { Alertness } from "../../../../src/plantstore/plants/sqlite/alertness.ts";

/** Questions, each so long after the answer to the one before, in milliseconds, and whether it is a lone deletion. */
type Questions = readonly (readonly [afterMs: number, isLone: boolean])[];

function awakeAfter(questions: Questions, awakeMsMax = 0.15): number[] {
  const alertness = new Alertness(awakeMsMax);
  let nowMs = 0;
  return questions.map(([afterMs, isLone]) => {
    nowMs += afterMs;
    alertness.asked(isLone, nowMs);
    nowMs += 1;
    alertness.answered(nowMs);
    return alertness.awakeMs;
  });
}

test.each<{ name: string; questions: Questions; awake: number[] }>([
  { name: "asleep after the first deletion", questions: [[0, true]], awake: [0] },
  {
    name: "awake for a caller that was back soon",
    questions: [
      [0, true],
      [0.1, true],
    ],
    awake: [0, 0.15],
  },
  {
    name: "awake for one that was back while it woke up",
    questions: [
      [0, true],
      [0.18, true],
    ],
    awake: [0, 0.15],
  },
  {
    name: "asleep for one that takes its time",
    questions: [
      [0, true],
      [0.3, true],
    ],
    awake: [0, 0],
  },
  {
    name: "asleep once it was awake in vain",
    questions: [
      [0, true],
      [0.1, true],
      [0.18, true],
      [0.18, true],
    ],
    awake: [0, 0.15, 0, 0.15],
  },
  {
    name: "asleep after a batch of several",
    questions: [
      [0, true],
      [0.1, false],
      [0.1, true],
    ],
    awake: [0, 0, 0.15],
  },
])("the storage thread is $name", ({ questions, awake }) => {
  expect(awakeAfter(questions)).toEqual(awake);
});

test("the storage thread is never awake where it has a core to share", () => {
  expect(
    awakeAfter(
      [
        [0, true],
        [0.01, true],
        [0.01, true],
      ],
      0,
    ),
  ).toEqual([0, 0, 0]);
});
