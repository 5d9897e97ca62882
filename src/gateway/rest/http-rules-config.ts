import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { type HttpRule, HttpRuleSchema, HttpSchema } from "../../gen/es/google/api/http_pb.ts";
import { readJson } from "../json/index.ts";

/** A rule that stands outside of the definition; its `selector` says which RPC it is for. */
export type OutsideHttpRule = MessageInitShape<typeof HttpRuleSchema>;

/**
 * Reads the HTTP rules of a service config: google.api.Http as JSON, `{"rules": [{"selector": …}]}`.
 *
 * @throws ConnectError `InvalidArgument` when the text is no such JSON
 */
export function parseHttpRules(json: string): readonly HttpRule[] {
  return readJson(HttpSchema, json).rules;
}

/** The rules from outside, by the RPC they are for. */
export type RulesBySelector = ReadonlyMap<string, HttpRule>;

/**
 * Sorts rules from outside by their selector. Of two for one RPC the last one wins, as in service configs.
 *
 * @throws Error that names every selector which is no RPC of these
 */
export function selectHttpRules(rules: readonly OutsideHttpRule[], methods: readonly DescMethod[]): RulesBySelector {
  const selectors = new Set(methods.map(selectorOf));
  const bySelector = new Map(rules.map((rule) => [rule.selector ?? "", create(HttpRuleSchema, rule)]));
  const unknown = [...bySelector.keys()].filter((selector) => !selectors.has(selector));
  if (unknown.length > 0) throw new Error(unknown.map((selector) => `selector "${selector}" is no RPC`).join("\n"));
  return bySelector;
}

/** How a rule from outside names an RPC: `package.Service.Method`. */
export function selectorOf(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}
