import { expect, test } from "vitest";
import { NestedSchema, SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { createFieldSelector } from "../../../../src/protocols/rest/rules/field-selection.ts";

const selectorOf = createFieldSelector(SinkSchema, NestedSchema, "", {});

/** The forms of a selection. `select` returns a selection that is nested this many levels deep. */
const forms: readonly (readonly [form: string, select: (levels: number) => string])[] = [
  ["dots", (levels) => `${"inner.".repeat(levels - 1)}text`],
  ["slashes", (levels) => `${"inner/".repeat(levels - 1)}text`],
  ["parentheses", (levels) => `${"inner(".repeat(levels - 1)}text${")".repeat(levels - 1)}`],
  ["dots and parentheses", (levels) => `${"inner.".repeat(levels - 2)}inner(text)`],
];

test.each(forms)("a selection with %s may be 100 levels deep", (_, select) => {
  const selectFields = selectorOf("", select(100)) ?? expect.unreachable("no selection");
  expect(selectFields('{"inner":{"number":1}}')).toBe('{"inner":{}}');
});

test.each(forms)("a selection with %s that is 101 levels deep is refused", (_, select) => {
  expect(() => selectorOf("", select(101))).toThrow("it is nested more than 100 levels deep");
});
