import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { parseDuration, parseTimestamp, printDuration, printTimestamp
} from "../../../../src/protobuf/messages/json/times.ts";

test.each([
  { text: "1970-01-01T00:00:00Z", seconds: 0n, nanos: 0 },
  { text: "1969-12-31T23:59:59.999999999Z", seconds: -1n, nanos: 999_999_999 },
  { text: "0001-01-01T00:00:00Z", seconds: -62135596800n, nanos: 0 },
  { text: "9999-12-31T23:59:59.999999999Z", seconds: 253402300799n, nanos: 999_999_999 },
  { text: "2024-02-29T12:30:45.5Z", seconds: 1709209845n, nanos: 500_000_000 },
  { text: "2024-02-29T12:30:45.5+02:00", seconds: 1709202645n, nanos: 500_000_000 },
  { text: "2000-02-29T00:00:00Z", seconds: 951782400n, nanos: 0 },
  { text: "2024-02-29T12:30:45-00:30", seconds: 1709211645n, nanos: 0 },
  { text: "0099-01-01T00:00:00Z", seconds: -59042995200n, nanos: 0 },
  { text: "1970-01-01T00:00:01.23Z", seconds: 1n, nanos: 230_000_000 },
  { text: "1970-01-01T00:00:01.234Z", seconds: 1n, nanos: 234_000_000 },
  { text: "1970-01-01T00:00:01.2345Z", seconds: 1n, nanos: 234_500_000 },
  { text: "1970-01-01T00:00:01.23456Z", seconds: 1n, nanos: 234_560_000 },
  { text: "1970-01-01T00:00:01.234567Z", seconds: 1n, nanos: 234_567_000 },
  { text: "1970-01-01T00:00:01.2345678Z", seconds: 1n, nanos: 234_567_800 },
  { text: "1970-01-01T00:00:01.23456789Z", seconds: 1n, nanos: 234_567_890 },
  { text: "0000-12-31T23:59:59-00:01", seconds: -62135596741n, nanos: 0 },
])("parseTimestamp() reads $text as a time", ({ text, seconds, nanos }) => {
  expect(parseTimestamp(text)).toMatchObject({ seconds, nanos });
});

test.each(
  // oxfmt-ignore
  [
    "",
    ..."01-32 02-30 03-32 04-31 05-32 06-31 07-32 08-32 09-31 10-32 11-31 12-32".split(" ")
      .map((day) => `2024-${day}T00:00:00Z`),
    "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z",
    "2024-01-00T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T23:60:00Z", "2024-12-31T23:59:60Z",
    "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2024-01-01t00:00:00Z", "2024-01-01T00:00:00z",
    "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00.1234567890Z", "2024-01-01T00:00:00+24:00",
    "2024-01-01T00:00:00+0100", "2024-01-01T00:00Z", "2024-01-01", "12024-01-01T00:00:00Z", "-0001-01-01T00:00:00Z",
    "0000-12-31T23:59:59Z", "0000-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    " 2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z\n", "1704067200",
  ],
)("parseTimestamp() refuses %j as a time", (text) => expect(parseTimestamp(text)).toBeUndefined());

test.each([
  { text: "0s", seconds: 0n, nanos: 0 },
  { text: "-0s", seconds: 0n, nanos: 0 },
  { text: "1.5s", seconds: 1n, nanos: 500_000_000 },
  { text: "-1.5s", seconds: -1n, nanos: -500_000_000 },
  { text: "-0.000000001s", seconds: 0n, nanos: -1 },
  { text: "007s", seconds: 7n, nanos: 0 },
  { text: "315576000000s", seconds: 315576000000n, nanos: 0 },
  { text: "-315576000000.000000000s", seconds: -315576000000n, nanos: 0 },
  { text: "315576000000.999999999s", seconds: 315576000000n, nanos: 999_999_999 },
  { text: "-315576000000.999999999s", seconds: -315576000000n, nanos: -999_999_999 },
])("parseDuration() reads $text as a duration", ({ text, seconds, nanos }) => {
  const duration = parseDuration(text);
  expect([duration?.seconds, duration?.nanos]).toEqual([seconds, nanos]);
});

test.each(
  // oxfmt-ignore
  [
      "", "1", "s", "1S", ".5s", "1.s", "1.0000000001s", "+1s", " 1s", "1s ", "1m", "1s1s", "1e3s", "--1s",
      "315576000001s", "-315576000001s", "9999999999999s", "NaNs",
    ],
)("parseDuration() refuses %j as a duration", (text) => expect(parseDuration(text)).toBeUndefined());

describe("printTimestamp()", () => {
  test("prints the same dates as Date", () => {
    const wrong: string[] = [];
    // Varies the seconds within a day, to cover each hour, minute and second.
    for (let seconds = -62_135_596_800; seconds <= 253_402_300_799; seconds += 97 * 86_400 + 3_661) {
      const want = new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
      if (printTimestamp({ seconds: BigInt(seconds), nanos: 0 }) !== want) wrong.push(want);
    }
    expect(wrong).toEqual([]);
  });

  test.each([
    { seconds: -62135596800n, nanos: 0, want: "0001-01-01T00:00:00Z" },
    { seconds: 253402300799n, nanos: 999_999_999, want: "9999-12-31T23:59:59.999999999Z" },
    { seconds: -1n, nanos: 1, want: "1969-12-31T23:59:59.000000001Z" },
    { seconds: 951782400n, nanos: 120_000_000, want: "2000-02-29T00:00:00.120Z" },
    { seconds: 951868800n, nanos: 123_400_000, want: "2000-03-01T00:00:00.123400Z" },
  ])("prints $want as JSON", ({ want, ...time }) => expect(printTimestamp(time)).toBe(want));

  test.each([
    { seconds: -62135596801n, nanos: 0 },
    { seconds: 253402300800n, nanos: 0 },
    { seconds: 0n, nanos: -1 },
    { seconds: 0n, nanos: 1_000_000_000 },
    { seconds: 0n, nanos: 0.5 },
  ])("refuses $seconds seconds and $nanos nanos", (time) => expect(() => printTimestamp(time)).toThrow("Timestamp"));
});

test.each([
  { seconds: 0n, nanos: 0, want: "0s" },
  { seconds: 1n, nanos: 500_000_000, want: "1.500s" },
  { seconds: -1n, nanos: -500_000, want: "-1.000500s" },
  { seconds: 0n, nanos: -1, want: "-0.000000001s" },
  { seconds: -315576000000n, nanos: 0, want: "-315576000000s" },
  { seconds: 315576000000n, nanos: 999_999_999, want: "315576000000.999999999s" },
  { seconds: -315576000000n, nanos: -999_999_999, want: "-315576000000.999999999s" },
])("printDuration() prints $want as JSON", ({ want, ...duration }) => expect(printDuration(duration)).toBe(want));

test.each([
  { seconds: 315576000001n, nanos: 0 },
  { seconds: -315576000001n, nanos: 0 },
  { seconds: 1n, nanos: -1 },
  { seconds: -1n, nanos: 1 },
  { seconds: 0n, nanos: 1_000_000_000 },
  { seconds: 0n, nanos: -1_000_000_000 },
])("printDuration() refuses $seconds seconds and $nanos nanos", (duration) => {
  expect(() => printDuration(duration)).toThrow("Duration");
});
