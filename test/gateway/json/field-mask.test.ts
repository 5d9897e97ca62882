import { describe, expect, test } from "vitest";
import { parseFieldMask } from "../../../src/gateway/json/field-mask.ts";

describe("parseFieldMask()", () => {
  test.each([
    { text: "", protoNames: false, want: [] },
    { text: "f", protoNames: false, want: ["f"] },
    { text: "fooBar,baz.quxQuux", protoNames: false, want: ["foo_bar", "baz.qux_quux"] },
    { text: "foo_bar,fooBar", protoNames: true, want: ["foo_bar", "foo_bar"] },
    { text: "foo_bar", protoNames: false, want: undefined },
    { text: "foo_b1.c_d", protoNames: true, want: ["foo_b1.c_d"] },
    { text: "foo_1", protoNames: true, want: undefined },
    { text: "foo_", protoNames: true, want: undefined },
    { text: "foo__bar", protoNames: true, want: undefined },
    { text: "f,", protoNames: true, want: undefined },
    { text: ",", protoNames: true, want: undefined },
    { text: "f..g", protoNames: true, want: undefined },
    { text: "f, g", protoNames: true, want: undefined },
    { text: "*", protoNames: true, want: undefined },
    { text: "F", protoNames: true, want: undefined },
    { text: "1a", protoNames: true, want: undefined },
  ])("reads $text (proto names: $protoNames)", ({ text, protoNames, want }) => {
    expect(parseFieldMask(text, protoNames)?.paths).toEqual(want);
  });
});
