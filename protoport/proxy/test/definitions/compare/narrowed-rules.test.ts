import { expect, test } from "vitest";
import { flattenRules, narrowedRules, type RuleValues } from "../../../src/definitions/compare/narrowed-rules.ts";

/** Returns the rules of a map, with a minimum length of its keys. */
function ofKeys(minLen: string): RuleValues {
  return flattenRules({ map: { keys: { string: { minLen } }, values: { string: { minLen: "1" } } } });
}

test("narrowedRules distinguishes the rules of map keys and map values", () => {
  expect(narrowedRules(ofKeys("1"), ofKeys("2"))).toEqual(["map.keys.string.minLen"]);
});
