import { expect, test } from "vitest";
import { readFlag, UsageError } from "../src/index.ts";
import { formatted, integer, oneOf, publicUrl, type SettingType, text } from "../src/settings/index.ts";

const even = formatted("number", "an even number", (given) => (/[02468]$/.test(given) ? Number(given) : undefined));

test.each<{ type: SettingType<unknown>; given: string; want: unknown }>([
  { type: integer(0, 65_535), given: "0", want: 0 },
  { type: integer(0, 65_535), given: "65535", want: 65_535 },
  { type: oneOf(["on", "off"]), given: "off", want: "off" },
  { type: even, given: "4", want: 4 },
  { type: text(), given: "", want: "" },
  { type: publicUrl, given: "http://a/b", want: new URL("http://a/b") },
])("readFlag reads $given as $want", ({ type, given, want }) => {
  expect(readFlag({ value: given }, "value", type)).toEqual(want);
});

test("readFlag returns undefined for a missing flag", () =>
  expect(readFlag({}, "value", integer(0, 1))).toBeUndefined());

test.each<{ type: SettingType<unknown>; given: string; problem: string }>([
  ...["", " 7", "07", "0x7", "1e3", "1.5", "-1", "65536", "99999999999999999999"].map((given) => ({
    type: integer(0, 65_535),
    given,
    problem: `must be between 0 and 65535, got "${given}"`,
  })),
  { type: oneOf(["on", "off"]), given: "On", problem: 'must be on or off, got "On"' },
  { type: oneOf(["a", "b", "c"]), given: "d", problem: 'must be one of a, b, c, got "d"' },
  { type: even, given: "5", problem: 'must be an even number, got "5"' },
  { type: even, given: "http://u:pw@h", problem: 'must be an even number, got "http://…@h"' },
  { type: even, given: "x".repeat(201), problem: `must be an even number, got "${"x".repeat(200)}…"` },
  ...["a", "ftp://a", "http://a/?", "http://a/#", "http://a/?b"].map((given) => ({
    type: publicUrl,
    given,
    problem: `must be an http or https URL without a query, fragment or credentials, such as https://api.example, got "${given}"`,
  })),
])("readFlag refuses $given", ({ type, given, problem }) => {
  expect(() => readFlag({ value: given }, "value", type)).toThrow(new UsageError(`--value ${problem}`));
});
