import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReloadLog } from "../../src/command/reload-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** What is noted at which second. */
type Note = readonly [atS: number, refusal: string | undefined];

/** The end of a test, in seconds: 25 minutes. */
const endS = 1_500;

function eachMinute(refusal: string, fromS: number, toS: number): readonly Note[] {
  return Array.from({ length: (toS - fromS) / 60 }, (_, at) => [fromS + at * 60, refusal]);
}

test.each<{ name: string; notes: readonly Note[]; want: readonly string[] }>([
  {
    name: "once in ten minutes while reloads go on",
    notes: eachMinute("a", 0, endS),
    want: ["0 a", "600 a", "1200 a"],
  },
  { name: "once in ten minutes when nothing is reloaded", notes: [[0, "a"]], want: ["0 a", "600 a", "1200 a"] },
  {
    name: "when it is another one",
    notes: [...eachMinute("a", 0, 180), [180, "b"]],
    want: ["0 a", "180 b", "780 b", "1380 b"],
  },
  {
    name: "no longer once a reload has succeeded",
    notes: [
      [0, "a"],
      [60, undefined],
    ],
    want: ["0 a"],
  },
  {
    name: "when it is back seconds after a success",
    notes: [
      [0, "a"],
      [1, undefined],
      [2, "a"],
    ],
    want: ["0 a", "2 a", "602 a", "1202 a"],
  },
  {
    name: "when it is back seconds after another one",
    notes: [
      [0, "a"],
      [1, "b"],
      [2, "a"],
    ],
    want: ["0 a", "1 b", "2 a", "602 a", "1202 a"],
  },
  {
    name: "after hundreds of others",
    notes: Array.from({ length: 200 }, (_, at) => [0, String(at)]),
    want: [...Array.from({ length: 200 }, (_, at) => `0 ${at}`), "600 199", "1200 199"],
  },
])("the refusal of a reload is written $name", ({ notes, want }) => {
  const written: string[] = [];
  const startMs = performance.now();
  const secondNow = (): number => (performance.now() - startMs) / 1_000;
  const advanceTo = (atS: number): unknown => vi.advanceTimersByTime((atS - secondNow()) * 1_000);
  const complain = (text: string): unknown => written.push(`${secondNow()} ${text}`);
  const log = new ReloadLog({ print: complain, complain });
  for (const [atS, refusal] of notes) {
    advanceTo(atS);
    log.note(refusal);
  }
  advanceTo(endS);
  expect(written).toEqual(want);
});
