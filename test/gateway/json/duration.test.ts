import { describe, expect, test } from "vitest";
import { parseDuration } from "../../../src/gateway/json/duration.ts";

describe("parseDuration()", () => {
  test.each([
    { text: "0s", seconds: 0n, nanos: 0 },
    { text: "-0s", seconds: 0n, nanos: 0 },
    { text: "1.5s", seconds: 1n, nanos: 500_000_000 },
    { text: "-1.5s", seconds: -1n, nanos: -500_000_000 },
    { text: "-0.000000001s", seconds: 0n, nanos: -1 },
    { text: "007s", seconds: 7n, nanos: 0 },
    { text: "315576000000s", seconds: 315576000000n, nanos: 0 },
    { text: "-315576000000.000000000s", seconds: -315576000000n, nanos: 0 },
  ])("reads $text", ({ text, seconds, nanos }) => {
    const duration = parseDuration(text);
    expect(duration?.seconds).toBe(seconds);
    expect(duration?.nanos).toBe(nanos);
  });

  test.each([
    "",
    "1",
    "s",
    "1S",
    ".5s",
    "1.s",
    "1.0000000001s",
    "+1s",
    " 1s",
    "1s ",
    "1m",
    "1s1s",
    "1e3s",
    "--1s",
    "315576000001s",
    "315576000000.000000001s",
    "-315576000001s",
    "9999999999999s",
    "NaNs",
  ])("refuses %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});
