import { describe, expect, test } from "vitest";
import { percentilesOf } from "../../bench/load/load.ts";
import { summarise } from "../../bench/summary.ts";

describe("in a summary of rounds", () => {
  test.each([
    { name: "one round is its own middle", rounds: [4], want: { median: 4, least: 4, spread: 0 } },
    { name: "the middle of three is the second", rounds: [9, 4, 5], want: { median: 5, least: 4, spread: 1 } },
    {
      name: "the middle of four lies between two",
      rounds: [10, 4, 6, 8],
      want: { median: 7, least: 4, spread: 6 / 7 },
    },
    { name: "figures are ordered as numbers", rounds: [10, 9, 100], want: { median: 10, least: 9, spread: 9.1 } },
  ])("$name", ({ rounds, want }) => {
    expect(summarise(rounds, Number)).toStrictEqual(want);
  });
});

describe("percentiles of latencies", () => {
  test("are the middle and the slow end", () => {
    const sample = Float64Array.from({ length: 1_000 }, (_, index) => 1_000 - index);
    expect(percentilesOf(sample)).toStrictEqual({ p50: 501, p99: 991 });
  });
});
