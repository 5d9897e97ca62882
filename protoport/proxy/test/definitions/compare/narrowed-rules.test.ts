import type { JsonValue } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { flattenRules, narrowedRules, type RuleValues } from "../../../src/definitions/compare/narrowed-rules.ts";

const ofKeys = (minLen: string): RuleValues =>
  flattenRules({ map: { keys: { string: { minLen } }, values: { string: { minLen: "1" } } } });

test("narrowedRules distinguishes the rules of map keys and map values", () =>
  expect(narrowedRules(ofKeys("1"), ofKeys("2"))).toEqual(["map.keys.string.minLen"]));

test.for<[path: string, wide: JsonValue, narrow: JsonValue]>([
  ["string.minLen", "1", "2"],
  ["repeated.maxItems", "2", "1"],
  ["string.in", ["a", "b"], ["a"]],
  ["string.notIn", ["a"], ["a", "b"]],
  ["cel", [{ id: "a" }], [{ id: "a" }, { id: "b" }]],
  ["required", false, true],
])("narrowedRules reports the rule %s from %j to %j, and not back", ([path, wide, narrow]) => {
  const rule = (value: JsonValue): RuleValues => new Map([[path, value]]);
  expect([narrowedRules(rule(wide), rule(narrow)), narrowedRules(rule(narrow), rule(wide))]).toEqual([[path], []]);
});

const limits = (gte: number): RuleValues => flattenRules({ int32: { gte, lte: 9 } });

test.each([2, 9])("narrowedRules reports gte raised from 1 to %s next to lte 9, and not back", (gte) => {
  expect([narrowedRules(limits(1), limits(gte)), narrowedRules(limits(gte), limits(1))]).toEqual([["int32.gte"], []]);
});
