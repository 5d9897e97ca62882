import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FailureLog } from "../../../src/gateway/command/failure-log.ts";
import { ReloadLog } from "../../../src/gateway/command/reload-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const minuteMs = 60_000;

/** Nothing is noted in the minutes that a row leaves out. */
type Notes = Readonly<Record<number, string | undefined>>;

function eachMinute(refusal: string, from: number, to: number): Notes {
  return Object.fromEntries(Array.from({ length: to - from }, (_, at) => [from + at, refusal]));
}

test.each<{ name: string; notes: Notes; want: readonly string[] }>([
  { name: "once in ten minutes while reloads go on", notes: eachMinute("a", 0, 25), want: ["0 a", "10 a", "20 a"] },
  { name: "once in ten minutes when nothing is reloaded", notes: { 0: "a" }, want: ["0 a", "10 a", "20 a"] },
  { name: "when it is another one", notes: { ...eachMinute("a", 0, 3), 3: "b" }, want: ["0 a", "3 b", "13 b", "23 b"] },
  { name: "no longer once a reload has succeeded", notes: { 0: "a", 1: undefined }, want: ["0 a"] },
  {
    name: "when it is back after a success",
    notes: { 0: "a", 1: undefined, 2: "a" },
    want: ["0 a", "2 a", "12 a", "22 a"],
  },
])("the refusal of a reload is written $name", ({ notes, want }) => {
  const written: string[] = [];
  const startMs = performance.now();
  const minuteNow = (): number => (performance.now() - startMs) / minuteMs;
  const complain = (text: string): unknown => written.push(`${minuteNow()} ${text}`);
  const terminal = { print: complain, complain, stopped: () => Promise.resolve(), onHangup: () => undefined };
  const log = new ReloadLog(new FailureLog(terminal));
  for (let minute = 0; minute < 25; minute++) {
    if (minute in notes) log.note(notes[minute]);
    vi.advanceTimersByTime(minuteMs);
  }
  expect(written).toEqual(want);
});
