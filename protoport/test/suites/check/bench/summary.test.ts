import { describe, expect, test } from "vitest";
import { percentilesOf } from "../../../../bench/load/load.ts";
import { summarise } from "../../../../bench/summary.ts";

describe("summarise", () => {
  test.each([
    ["returns a single round as the median", [4], { median: 4, least: 4, spread: 0 }],
    ["returns the middle of three rounds as the median", [9, 4, 5], { median: 5, least: 4, spread: 1 }],
    [
      "returns the mean of the middle two of four rounds as the median",
      [10, 4, 6, 8],
      { median: 7, least: 4, spread: 6 / 7 },
    ],
    ["sorts figures numerically", [10, 9, 100], { median: 10, least: 9, spread: 9.1 }],
  ])("%s", (_name, rounds, want) => {
    expect(summarise(rounds, Number)).toStrictEqual(want);
  });
});

describe("percentilesOf", () => {
  test("returns a sample's p50 and p99", () => {
    const sample = Float64Array.from({ length: 1_000 }, (_, index) => 1_000 - index);
    expect(percentilesOf(sample)).toStrictEqual({ p50: 501, p99: 991 });
  });
});
