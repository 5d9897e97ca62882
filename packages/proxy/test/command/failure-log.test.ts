import { expect, test, vi } from "vitest";
import { causesOf, FailureLog } from "../../src/command/failure-log.ts";

function openLog(): { readonly log: FailureLog; readonly told: string[] } {
  const told: string[] = [];
  const complain = (text: string): unknown => told.push(text);
  const terminal = { print: complain, complain, stopped: () => Promise.resolve(), onHangup: () => undefined };
  return { log: new FailureLog(terminal), told };
}

test("a failure is told once in ten seconds, whatever others are told meanwhile", () => {
  let nowMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const { log, told } = openLog();
  for (const atMs of [0, 6_000, 10_000, 10_001, 20_000, 20_002]) {
    nowMs = atMs;
    log.write("one");
    log.write(`another at ${atMs <= 10_000 ? 0 : atMs}`);
  }
  expect(told.filter((text) => text === "one")).toHaveLength(3);
  expect(told.filter((text) => text === "another at 0")).toHaveLength(1);
});

test("no more than a hundred failures are told in ten seconds", () => {
  const { log, told } = openLog();
  for (let failure = 0; failure < 1_000; failure++) log.write(String(failure));
  expect(told).toHaveLength(100);
});

test.each([
  { name: "its causes, each once", error: withCauses("one", "two", "one"), want: "one: two" },
  { name: "five of them at most", error: withCauses("1", "2", "3", "4", "5", "6"), want: "1: 2: 3: 4: 5" },
  { name: "one line", error: new Error("one\n  two"), want: "one two" },
  { name: "nothing of what is no error", error: "text", want: "" },
])("an error is told by $name", ({ error, want }) => {
  expect(causesOf(error)).toBe(want);
});

function withCauses(...messages: readonly string[]): unknown {
  return messages.toReversed().reduce<unknown>((cause, message) => new Error(message, { cause }), undefined);
}
