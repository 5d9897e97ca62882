import { describe, expect, test } from "vitest";
import { parseFieldMask } from "../../../src/gateway/json/field-mask.ts";

describe("parseFieldMask()", () => {
  test.each([
    { text: "", protoNames: false, want: [] },
    { text: "f", protoNames: false, want: ["f"] },
    { text: "fooBar,baz.quxQuux", protoNames: false, want: ["foo_bar", "baz.qux_quux"] },
    { text: "*", protoNames: false, want: ["*"] },
    { text: "items.*.fooBar", protoNames: false, want: ["items.*.foo_bar"] },
    { text: "FooBar", protoNames: false, want: ["_foo_bar"] },
    { text: "addressLine1", protoNames: false, want: ["address_line1"] },
    { text: "foo_bar,fooBar,_foo", protoNames: true, want: ["foo_bar", "foo_bar", "_foo"] },
    { text: "foo_b1.c_d,address_line_1,foo_", protoNames: true, want: ["foo_b1.c_d", "address_line_1", "foo_"] },
    { text: "foo_bar", protoNames: false, want: undefined },
    { text: "_foo", protoNames: false, want: undefined },
    { text: "address_line_1", protoNames: false, want: undefined },
    { text: "f,", protoNames: true, want: undefined },
    { text: "f..g", protoNames: true, want: undefined },
    { text: "f, g", protoNames: true, want: undefined },
    { text: "1a", protoNames: true, want: undefined },
    { text: "a-b", protoNames: true, want: undefined },
    { text: "**", protoNames: true, want: undefined },
  ])("reads $text (proto names: $protoNames)", ({ text, protoNames, want }) => {
    expect(parseFieldMask(text, protoNames)?.paths).toEqual(want);
  });
});
