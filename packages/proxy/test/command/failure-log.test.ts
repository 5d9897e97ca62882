import { expect, test, vi } from "vitest";
import { describeCauses, Notices } from "../../src/command/notices.ts";

function openLog(): { readonly log: Notices; readonly logged: string[] } {
  const logged: string[] = [];
  const err = (text: string): unknown => logged.push(text);
  const terminal = { out: err, err, stopRequested: () => Promise.resolve(), onHangup: () => undefined };
  return { log: new Notices(terminal), logged };
}

test("a repeated failure is logged once in ten seconds", () => {
  let nowMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const { log, logged } = openLog();
  for (const atMs of [0, 6_000, 10_000, 10_001, 20_000, 20_002]) {
    nowMs = atMs;
    log.event("one");
    log.event(`another at ${atMs <= 10_000 ? 0 : atMs}`);
  }
  expect(logged.filter((text) => text === "one")).toHaveLength(3);
  expect(logged.filter((text) => text === "another at 0")).toHaveLength(1);
});

test("at most a hundred failures are logged in ten seconds", () => {
  const { log, logged } = openLog();
  for (let failure = 0; failure < 1_000; failure++) log.event(String(failure));
  expect(logged).toHaveLength(100);
});

test.each([
  {
    name: "the distinct messages of an error and its causes",
    error: withCauses("one", "two", "one"),
    want: "one: two",
  },
  { name: "at most the first five messages", error: withCauses("1", "2", "3", "4", "5", "6"), want: "1: 2: 3: 4: 5" },
  { name: "a single line without line breaks", error: new Error("one\n  two"), want: "one two" },
  { name: "text without control characters", error: new Error("one\u001B]0;two\u0007\u009B"), want: "one ]0;two " },
  { name: "an empty string for a thrown string", error: "text", want: "" },
])("describeCauses returns $name", ({ error, want }) => {
  expect(describeCauses(error)).toBe(want);
});

function withCauses(...messages: readonly string[]): unknown {
  return messages.toReversed().reduce<unknown>((cause, message) => new Error(message, { cause }), undefined);
}
