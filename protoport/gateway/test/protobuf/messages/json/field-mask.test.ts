import { create, toJson } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseFieldMask, printFieldMask } from "../../../../src/protobuf/messages/json/field-mask.ts";
import { isPeerAtLeast, numRunsOf } from "@protoport/testing/process";

test.each([
  { text: "", protoNames: false, want: [] },
  { text: "f", protoNames: false, want: ["f"] },
  { text: "fooBar,baz.quxQuux", protoNames: false, want: ["foo_bar", "baz.qux_quux"] },
  { text: "*", protoNames: false, want: ["*"] },
  { text: "items.*.fooBar", protoNames: false, want: ["items.*.foo_bar"] },
  { text: "FooBar", protoNames: false, want: ["_foo_bar"] },
  { text: "addressLine1", protoNames: false, want: ["address_line1"] },
  { text: "address_line_1,field_1x.foo_,a__b", protoNames: false, want: ["address_line_1", "field_1x.foo_", "a__b"] },
  { text: "`camelCase`.`ID`,foo_Bar", protoNames: false, want: ["camelCase.ID", "foo_Bar"] },
  { text: "foo_bar,fooBar,_foo", protoNames: true, want: ["foo_bar", "foo_bar", "_foo"] },
  { text: "foo_b1.c_d,foo_1,foo_,`foo`", protoNames: true, want: ["foo_b1.c_d", "foo_1", "foo_", "foo"] },
])('parseFieldMask() reads "$text" (protoNames: $protoNames)', ({ text, protoNames, want }) => {
  expect(parseFieldMask(text, protoNames)?.paths).toEqual(want);
});

// oxfmt-ignore
test.each([
  { text: "foo_bar", protoNames: false }, { text: "_foo", protoNames: false }, { text: "`foo`", protoNames: false },
  { text: "`foo_1`", protoNames: false }, { text: "f,", protoNames: true }, { text: ",", protoNames: true },
  { text: "f..g", protoNames: true }, { text: "f, g", protoNames: true }, { text: "1a", protoNames: true },
  { text: "a-b", protoNames: true }, { text: "**", protoNames: true }, { text: "`", protoNames: true },
  { text: "``", protoNames: true }, { text: "`a.b`", protoNames: true }, { text: "xfoo`", protoNames: true },
  { text: "`foox", protoNames: true }, { text: "`a,b`", protoNames: true },
])('parseFieldMask() refuses "$text" (protoNames: $protoNames)', ({ text, protoNames }) =>
  expect(parseFieldMask(text, protoNames)).toBeUndefined());

function print(paths: readonly string[]): string | undefined {
  try {
    return printFieldMask(paths);
  } catch {
    return undefined;
  }
}

describe("printFieldMask()", () => {
  const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,5}$/);
  const path = fc.array(fc.oneof(name, fc.constant("*")), { minLength: 1, maxLength: 3 }).map((all) => all.join("."));
  test.each([
    { paths: [], want: "" },
    { paths: ["foo_bar", "a.b_c"], want: "fooBar,a.bC" },
    { paths: ["address_line1", "_foo", "*", "items.*.a_b"], want: "addressLine1,Foo,*,items.*.aB" },
    { paths: ["labels.a-b"], want: "labels.a-b" },
  ])('prints the paths $paths as "$want"', ({ paths, want }) => expect(printFieldMask(paths)).toBe(want));

  const withoutJson = "  a,b  a..b  `a`  fooBar  ID  foo_3_bar  foo__bar  trailing_  __leading  _Capital  a_b.aB";
  test.each(withoutJson.split("  "))("refuses the path %j, which has no JSON form", (refused) => {
    expect(() => printFieldMask([refused])).toThrow("has no JSON form");
  });

  test("prints a string that parses to the same path", () =>
    fc.assert(
      fc.property(path, (each) => {
        const text = print([each]);
        if (text === undefined) return;
        expect([parseFieldMask(text, false)?.paths, parseFieldMask(text, true)?.paths]).toEqual([[each], [each]]);
      }),
      { numRuns: numRunsOf(1000) },
    ));

  // Before 2.11, protobuf-es accepted paths that JSON cannot spell.
  test.runIf(isPeerAtLeast("@bufbuild/protobuf", "2.11"))("prints and refuses the same paths as protobuf-es", () => {
    fc.assert(
      fc.property(path, (each) => {
        let want: unknown;
        try {
          want = toJson(FieldMaskSchema, create(FieldMaskSchema, { paths: [each] }));
        } catch {
          want = undefined;
        }
        expect(print([each])).toBe(want);
      }),
      { numRuns: numRunsOf(1000) },
    );
  });
});
