import { expect, test } from "vitest";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { maxParameterNames, resolveParameter } from "../../../../src/protocols/rest/rules/parameters.ts";

const forms = { acceptsMaps: true, acceptsStructs: false, acceptsGoDurations: false };
const binding = { message: SinkSchema, boundFields: new Map(), lenient: false, ...forms };

/** Returns a field path with this many names, in which each message contains the next. */
const pathOf = (names: number): string =>
  ["nested", ...Array.from({ length: names - 2 }, () => "inner"), "text"].join(".");

test(`a query parameter with ${maxParameterNames} names sets a field`, () =>
  expect(resolveParameter(binding, pathOf(maxParameterNames))?.path).toHaveLength(maxParameterNames));

test.each([
  { name: "one name more than the limit", parameter: pathOf(maxParameterNames + 1) },
  { name: "an unknown last name", parameter: "nested.inner.color" },
  { name: "a map key for a field that is not a map", parameter: "nested[a]" },
])("a query parameter with $name does not set a field", ({ parameter }) => {
  expect(resolveParameter(binding, parameter)).toBeUndefined();
});
