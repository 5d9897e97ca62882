import { expect, test } from "vitest";
import { parseDurationMs } from "../../src/command/command.ts";

test.each([
  { text: "1m", want: 60_000 },
  { text: "24h", want: 86_400_000 },
  { text: "90d", want: 7_776_000_000 },
  { text: "99999w", want: 60_479_395_200_000 },
])('parseDurationMs reads "$text" as $want milliseconds', ({ text, want }) => expect(parseDurationMs(text)).toBe(want));

test.each(["0d", "1", "1s", " 1d", "1d ", "100000w"])('parseDurationMs rejects "%s"', (text) => {
  expect(parseDurationMs(text)).toBe(undefined);
});
