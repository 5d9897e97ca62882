import { expect, test } from "vitest";
import { parseDurationMs } from "../../../../src/command/duration.ts";

test.each([
  { text: "1m", want: 60_000 },
  { text: "24h", want: 86_400_000 },
  { text: "90d", want: 90 * 86_400_000 },
  { text: "99999w", want: 99_999 * 7 * 86_400_000 },
  { text: "0d", want: undefined },
  { text: "1", want: undefined },
  { text: "1s", want: undefined },
  { text: " 1d", want: undefined },
  { text: "1d ", want: undefined },
  { text: "100000w", want: undefined },
])('parseDurationMs reads "$text" as $want milliseconds', ({ text, want }) => {
  expect(parseDurationMs(text)).toBe(want);
});
