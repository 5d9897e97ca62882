import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { create, mergeFromBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { http } from "../../../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema, HttpSchema } from "../../../gen/google/api/http_pb.ts";
import { readJson } from "../../../messages/json/index.ts";
import { RuleProblem } from "./rule-problem.ts";

/** One binding of an HTTP rule: a method, a path template, and which fields are the bodies. */
export interface HttpPattern {
  /** The HTTP method, or `*` for every method. */
  readonly httpMethod: string;
  /** The path template as it is written. */
  readonly pathTemplate: string;
  /** The request field that is the body, `*` for every field that the path does not set, `""` for no body. */
  readonly body: string;
  /** The response field that is the body, `""` for the whole message. */
  readonly responseBody: string;
}

/** A rule from outside the definition; its `selector` names the RPC. */
export type OutsideHttpRule = MessageInitShape<typeof HttpRuleSchema>;

/**
 * Reads the HTTP rules of a service config: google.api.Http as JSON, `{"rules": [{"selector": …}]}`.
 *
 * @throws ConnectError `InvalidArgument` when the text is not such JSON
 */
export function parseHttpRules(json: string): readonly HttpRule[] {
  // No code is generated for what is read once.
  return readJson(HttpSchema, json, { codegen: false }).rules;
}

/** Finds the rule of an RPC; `undefined` when it has none. */
export type FindHttpRule = (method: DescMethod) => HttpRule | undefined;

/**
 * Creates the function that finds the rules of RPCs: the last rule from outside for the RPC, as in service configs, or
 * else its annotation. Annotations are found by the number of the extension, so it does not matter which generated
 * `annotations_pb` a service imports.
 *
 * @param ignoreUnregistered - whether selectors of RPCs that are not among these are ignored. One that names no RPC of a
 * service that is among them is still refused
 * @throws RuleProblem that names every selector that matches none of these RPCs
 */
export function createHttpRuleFinder(
  outside: readonly OutsideHttpRule[],
  methods: readonly DescMethod[],
  ignoreUnregistered: boolean,
): FindHttpRule {
  const services = new Map(methods.map(({ parent }) => [parent.typeName, parent]));
  const mayBeElsewhere = (selector: string): boolean => {
    const service = services.get(selector.slice(0, selector.lastIndexOf(".")));
    return service === undefined || service.methods.some((method) => selectorOf(method) === selector);
  };
  const selectors = new Set(methods.map(selectorOf));
  const bySelector = new Map(outside.map((rule) => [rule.selector ?? "", create(HttpRuleSchema, rule)]));
  const unknown = [...bySelector.keys()].filter(
    (selector) => !selectors.has(selector) && !(ignoreUnregistered && mayBeElsewhere(selector)),
  );
  if (unknown.length > 0)
    throw new RuleProblem(unknown.map((selector) => `selector "${selector}" does not match an RPC`).join("\n"));
  return (method) => bySelector.get(selectorOf(method)) ?? readAnnotation(method);
}

// `getOption` makes a message type for each call, which is a fifth of what the start of many services costs.
function readAnnotation({ proto }: DescMethod): HttpRule | undefined {
  const unknown = proto.options?.$unknown?.filter(({ no }) => no === http.number) ?? [];
  if (unknown.length === 0) return undefined;
  const rule = create(HttpRuleSchema);
  for (const { data } of unknown) mergeFromBinary(HttpRuleSchema, rule, new BinaryReader(data).bytes());
  return rule;
}

/** Returns the name of an RPC in a rule from outside: `package.Service.Method`. */
export function selectorOf(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

// RFC 9110 §5.6.2: a method is a token.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Returns the bindings of a rule: its own pattern first, then the additional ones in order.
 *
 * @throws RuleProblem when a pattern is missing, when additional bindings are nested (http.proto allows one level), or
 * when a custom kind is not an HTTP method
 */
export function toHttpPatterns(rule: HttpRule): readonly HttpPattern[] {
  const nested = rule.additionalBindings.find((additional) => additional.additionalBindings.length > 0);
  if (nested !== undefined) throw new RuleProblem("additional_bindings must not be nested");
  return [rule, ...rule.additionalBindings].map(toHttpPattern);
}

function toHttpPattern({ body, responseBody, pattern }: HttpRule): HttpPattern {
  if (pattern.case === undefined) throw new RuleProblem("a binding must have a method and a path");
  if (pattern.case !== "custom") {
    return { httpMethod: pattern.case.toUpperCase(), pathTemplate: pattern.value, body, responseBody };
  }
  const { kind, path } = pattern.value;
  if (!token.test(kind)) throw new RuleProblem(`custom kind must be an HTTP method, got "${kind}"`);
  return { httpMethod: kind, pathTemplate: path, body, responseBody };
}
