import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Notices } from "../../src/command/notices.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A reload's result, and its time in seconds. */
type Reload = readonly [atS: number, problem: string | undefined];

/** Time in seconds at which the test ends, which is 25 minutes. */
const endS = 1_500;

function eachMinute(problem: string, fromS: number, toS: number): readonly Reload[] {
  return Array.from({ length: (toS - fromS) / 60 }, (_, at) => [fromS + at * 60, problem]);
}

test.each<{ name: string; reloads: readonly Reload[]; want: readonly string[] }>([
  {
    name: "every ten minutes while reloads fail for the same reason",
    reloads: eachMinute("a", 0, endS),
    want: ["0 a", "600 a", "1200 a"],
  },
  { name: "every ten minutes until another reload", reloads: [[0, "a"]], want: ["0 a", "600 a", "1200 a"] },
  {
    name: "immediately when the reason changes",
    reloads: [...eachMinute("a", 0, 180), [180, "b"]],
    want: ["0 a", "180 b", "780 b", "1380 b"],
  },
  {
    name: "only until a reload succeeds",
    reloads: [
      [0, "a"],
      [60, undefined],
    ],
    want: ["0 a"],
  },
  {
    name: "again if a reload fails seconds after a success",
    reloads: [
      [0, "a"],
      [1, undefined],
      [2, "a"],
    ],
    want: ["0 a", "2 a", "602 a", "1202 a"],
  },
  {
    name: "again when its reason returns after another one",
    reloads: [
      [0, "a"],
      [1, "b"],
      [2, "a"],
    ],
    want: ["0 a", "1 b", "2 a", "602 a", "1202 a"],
  },
  {
    name: "even after hundreds of different failures",
    reloads: Array.from({ length: 200 }, (_, at) => [0, String(at)]),
    want: [...Array.from({ length: 200 }, (_, at) => `0 ${at}`), "600 199", "1200 199"],
  },
])("a failed reload is logged $name", ({ reloads, want }) => {
  const logged: string[] = [];
  const startMs = performance.now();
  const secondNow = (): number => (performance.now() - startMs) / 1_000;
  const advanceTo = (atS: number): unknown => vi.advanceTimersByTime((atS - secondNow()) * 1_000);
  const err = (text: string): unknown => logged.push(`${secondNow()} ${text}`);
  const log = new Notices({ out: err, err });
  for (const [atS, problem] of reloads) {
    advanceTo(atS);
    log.problem("a", problem);
  }
  advanceTo(endS);
  expect(logged).toEqual(want);
});
