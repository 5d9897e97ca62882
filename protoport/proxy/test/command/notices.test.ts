import { onTestFinished, expect, test, vi } from "vitest";
import { describeCauses, Notices } from "../../src/command/notices.ts";

function openNotices(): { readonly notices: Notices; readonly logged: string[] } {
  const logged: string[] = [];
  return { notices: new Notices({ out: () => undefined, err: (line) => void logged.push(line) }), logged };
}

test("event() logs a repeated event once in ten seconds", () => {
  let nowMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const { notices, logged } = openNotices();
  for (const atMs of [0, 6_000, 10_000, 10_001, 20_000, 20_002]) {
    nowMs = atMs;
    notices.event("one");
    notices.event(`another at ${atMs <= 10_000 ? 0 : atMs}`);
  }
  expect(logged.filter((text) => text === "one")).toHaveLength(3);
  expect(logged.filter((text) => text === "another at 0")).toHaveLength(1);
});

test("event() logs at most a hundred events in ten seconds", () => {
  const { notices, logged } = openNotices();
  for (let failure = 0; failure < 1_000; failure++) notices.event(String(failure));
  expect(logged).toHaveLength(100);
});

test("close() stops repeating problems", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { notices, logged } = openNotices();
  for (const name of ["one", "two"]) notices.problem(name, name);
  notices.close();
  vi.advanceTimersByTime(endS * 1_000);
  expect(logged).toEqual(["one", "two"]);
});

test.each([
  ["the distinct messages of an error and its causes", withCauses("one", "two", "one"), "one: two"],
  ["at most the first five messages", withCauses("1", "2", "3", "4", "5", "6"), "1: 2: 3: 4: 5"],
  ["a single line without line breaks", new Error("one\n  two"), "one two"],
  ["text without control characters", new Error("one\u001B]0;two\u0007\u009B"), "one ]0;two "],
  ["an empty string for a thrown string", "text", ""],
])("describeCauses returns %s", (_name, error, want) => expect(describeCauses(error)).toBe(want));

test("state() logs each new line, up to 20 per change", () => {
  const { notices, logged } = openNotices();
  const record = (...conflicts: readonly (readonly string[])[]): readonly string[] => {
    for (const [at, each] of conflicts.entries()) {
      const name = `upstream dns:${at}:1`;
      const conflicting = each.map((line) => `${name}: ${line}`);
      notices.state(name, conflicting, "more services or routes belong to others");
    }
    return logged.splice(0);
  };
  expect(record([], ["a"])).toEqual(["upstream dns:1:1: a"]);
  expect([record(["a"], ["a", "b"]), record([], ["b"])]).toEqual([["upstream dns:0:1: a", "upstream dns:1:1: b"], []]);
  // A conflict that disappears and returns is logged again.
  expect(record([], ["a", "b"])).toEqual(["upstream dns:1:1: a"]);
  const many = record(Array.from({ length: 25 }, (_, at) => String(at)));
  expect([many.length, many[20]]).toEqual([21, "upstream dns:0:1: 5 more services or routes belong to others"]);
  expect(record(Array.from({ length: 20 }, (_, at) => `other ${at}`))).toHaveLength(20);
});

/** A reload's result, and its time in seconds. */
type Reload = readonly [atS: number, problem: string | undefined];

/** Time in seconds at which the test ends, which is 25 minutes. */
const endS = 1_500;

const eachMinute = (problem: string, fromS: number, toS: number): readonly Reload[] =>
  Array.from({ length: (toS - fromS) / 60 }, (_, at) => [fromS + at * 60, problem]);

test.each<[name: string, reloads: readonly Reload[], want: readonly string[]]>(
  // oxfmt-ignore
  [
    ["every ten minutes while each reload has it", eachMinute("a", 0, endS), ["0 a", "600 a", "1200 a"]],
    ["every ten minutes without another reload", [[0, "a"]], ["0 a", "600 a", "1200 a"]],
    ["immediately when it changes", [...eachMinute("a", 0, 180), [180, "b"]], ["0 a", "180 b", "780 b", "1380 b"]],
    ["only until it ends", [[0, "a"], [60, undefined]], ["0 a"]],
    ["again if it returns after its end", [[0, "a"], [1, undefined], [2, "a"]], ["0 a", "2 a", "602 a", "1202 a"]],
    ["again if it returns after another problem", [[0, "a"], [1, "b"], [2, "a"]],
      ["0 a", "1 b", "2 a", "602 a", "1202 a"]],
    ["even after hundreds of others", Array.from({ length: 200 }, (_, at) => [0, String(at)]),
      [...Array.from({ length: 200 }, (_, at) => `0 ${at}`), "600 199", "1200 199"]],
  ],
)("problem() logs a problem %s", (_name, reloads, want) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const logged: string[] = [];
  const startMs = performance.now();
  const secondNow = (): number => (performance.now() - startMs) / 1_000;
  const advanceTo = (atS: number): unknown => vi.advanceTimersByTime((atS - secondNow()) * 1_000);
  const err = (text: string): unknown => logged.push(`${secondNow()} ${text}`);
  const notices = new Notices({ out: err, err });
  for (const [atS, problem] of reloads) {
    advanceTo(atS);
    notices.problem("a", problem);
  }
  advanceTo(endS);
  expect(logged).toEqual(want);
});

function withCauses(...messages: readonly string[]): unknown {
  return messages.toReversed().reduce<unknown>((cause, message) => new Error(message, { cause }), undefined);
}
