import { create, type DescMethod, mergeFromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { isToken, toShortLine } from "../../../http/index.ts";
import { http } from "../../../protobuf/gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema, HttpSchema } from "../../../protobuf/gen/google/api/http_pb.ts";
import { readJson } from "../../../protobuf/index.ts";

/** A binding in an HTTP rule, with the method, the path template, and the fields for both bodies. */
export interface HttpPattern {
  /** The HTTP method, or `*` for every method. */
  readonly httpMethod: string;
  /** The path template as written in the rule. */
  readonly pathTemplate: string;
  /** The request field that is the body, `*` for every field that the path does not set, `""` for no body. */
  readonly body: string;
  /** The response field that is the body, `""` for the complete message. */
  readonly responseBody: string;
}

/** A rule that is not an RPC's annotation. The rule's `selector` names the RPC. */
export type ExternalHttpRule = MessageInitShape<typeof HttpRuleSchema>;

/**
 * Reads the HTTP rules in a service config, which are a google.api.Http in JSON: `{"rules": [{"selector": …}]}`.
 *
 * @throws ConnectError `InvalidArgument` if the string is not a google.api.Http in JSON
 */
export function parseHttpRules(json: string): readonly HttpRule[] {
  // Generated code for google.api.Http would be used only once, so no code is generated.
  return readJson(HttpSchema, json, { codegen: false }).rules;
}

/** Finds an RPC's rule. Returns `undefined` for an RPC without a rule. */
export type FindHttpRule = (method: DescMethod) => HttpRule | undefined;

/**
 * Creates a function that finds an RPC's rule. The last external rule for an RPC replaces the annotation, as in service
 * configs. Annotations are found by the extension number, so any generated `annotations_pb` works.
 *
 * @param ignoreUnregistered - whether selectors for RPCs that are not in `methods` are ignored. An unknown RPC in a
 * registered service is rejected in any case
 * @throws RuleProblem that lists every selector that matches none of `methods`
 */
export function createHttpRuleFinder(
  externalRules: readonly ExternalHttpRule[],
  methods: readonly DescMethod[],
  ignoreUnregistered: boolean,
): FindHttpRule {
  const services = new Map(methods.map(({ parent }) => [parent.typeName, parent]));
  const mayBeUnregistered = (selector: string): boolean => {
    const service = services.get(selector.slice(0, selector.lastIndexOf(".")));
    return service === undefined || service.methods.some((method) => selectorOf(method) === selector);
  };
  const selectors = new Set(methods.map(selectorOf));
  const rulesBySelector = new Map(externalRules.map((rule) => [rule.selector ?? "", create(HttpRuleSchema, rule)]));
  const unknown = [...rulesBySelector.keys()].filter(
    (selector) => !selectors.has(selector) && !(ignoreUnregistered && mayBeUnregistered(selector)),
  );
  if (unknown.length > 0)
    throw new RuleProblem(
      unknown.map((selector) => `selector "${toShortLine(selector)}" does not match an RPC`).join("\n"),
    );
  return (method) => rulesBySelector.get(selectorOf(method)) ?? readAnnotation(method);
}

// `getOption` would create a message type in each call, which takes a fifth of the start-up time with many services.
function readAnnotation({ proto }: DescMethod): HttpRule | undefined {
  const unknown = proto.options?.$unknown?.filter(({ no }) => no === http.number) ?? [];
  if (unknown.length === 0) return undefined;
  const rule = create(HttpRuleSchema);
  for (const { data } of unknown) mergeFromBinary(HttpRuleSchema, rule, new BinaryReader(data).bytes());
  return rule;
}

/** Returns an RPC's selector: `package.Service.Method`. */
export function selectorOf(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

/** Returns an RPC's path: `/package.Service/Method`. */
export function procedureOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/**
 * Returns a rule's patterns, with the rule's main pattern before the additional bindings.
 *
 * @throws RuleProblem if a pattern is missing, if additional bindings are nested (http.proto allows one level), or if
 * the kind of a custom pattern is not an HTTP method
 */
export function toHttpPatterns(external: ExternalHttpRule): readonly HttpPattern[] {
  const rule = create(HttpRuleSchema, external);
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
  if (!isToken(kind)) throw new RuleProblem(`custom kind must be an HTTP method, got "${toShortLine(kind)}"`);
  return { httpMethod: kind, pathTemplate: path, body, responseBody };
}

/** A mistake in a rule, which is reported to the rule's author. Other errors while rules are compiled are defects. */
export class RuleProblem extends Error {}

/** A rule that names a field which its message lacks. */
export class UnknownFieldProblem extends RuleProblem {}
