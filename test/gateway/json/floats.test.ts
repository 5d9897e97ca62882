import { describe, expect, test } from "vitest";
import { parseFloatText } from "../../../src/gateway/json/floats.ts";

describe("parseFloatText()", () => {
  test.each([
    { text: "1.5", single: false, want: 1.5 },
    { text: "-0", single: false, want: -0 },
    { text: "1e308", single: false, want: 1e308 },
    { text: "5e-324", single: false, want: 5e-324 },
    { text: "1e-400", single: false, want: 0 },
    { text: "3.4028234663852886e38", single: true, want: 3.4028234663852886e38 },
    { text: "NaN", single: false, want: Number.NaN },
    { text: "Infinity", single: true, want: Number.POSITIVE_INFINITY },
    { text: "-Infinity", single: true, want: Number.NEGATIVE_INFINITY },
    { text: "1e309", single: false, want: undefined },
    { text: "-1e309", single: false, want: undefined },
    { text: "3.4028235e38", single: true, want: 3.4028234663852886e38 },
    { text: "-3.4028235e38", single: true, want: -3.4028234663852886e38 },
    { text: "3.5e38", single: true, want: undefined },
    { text: "0.1", single: true, want: 0.10000000149011612 },
    { text: "16777217", single: true, want: 16777216 },
    { text: "1e-46", single: true, want: 0 },
    { text: "0.1", single: false, want: 0.1 },
    { text: "0x7", single: false, want: undefined },
    { text: ".5", single: false, want: undefined },
    { text: "5.", single: false, want: undefined },
    { text: "+5", single: false, want: undefined },
    { text: " 5", single: false, want: undefined },
    { text: "05", single: false, want: undefined },
    { text: "", single: false, want: undefined },
    { text: "inf", single: false, want: undefined },
    { text: "nan", single: false, want: undefined },
    { text: "+Infinity", single: false, want: undefined },
  ])("reads $text (single: $single) as $want", ({ text, single, want }) => {
    expect(parseFloatText(text, single)).toBe(want);
  });
});
