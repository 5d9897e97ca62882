import type { DescMethod } from "@bufbuild/protobuf";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/es/google/api/annotations_pb.ts";
import type { HttpRule } from "../../gen/es/google/api/http_pb.ts";

/** One binding of an HTTP rule: a method, a path template, and what the bodies are. */
export interface HttpPattern {
  /** The HTTP method, or `*` for every method. */
  readonly httpMethod: string;
  /** The path template as it is written. */
  readonly pathTemplate: string;
  /** The request field that is the body, `*` for all that the path does not bind, `""` for no body. */
  readonly body: string;
  /** The response field that is the body, `""` for the whole message. */
  readonly responseBody: string;
}

// RFC 9110 §5.6.2: a method is a token.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * The rule that annotates an RPC: its option `(google.api.http)`.
 *
 * Looked up by the extension's number, so it does not matter whose generated `annotations_pb` the service
 * was generated against.
 */
export function readHttpRule(method: DescMethod): HttpRule | undefined {
  return hasOption(method, http) ? getOption(method, http) : undefined;
}

/**
 * The bindings of a rule: its own pattern first, then the additional ones in their order.
 *
 * @throws Error when a pattern is missing, when additional bindings are nested (http.proto allows one
 * level), or when a custom kind is no HTTP method
 */
export function toHttpPatterns(rule: HttpRule): readonly HttpPattern[] {
  const nested = rule.additionalBindings.find((additional) => additional.additionalBindings.length > 0);
  if (nested !== undefined) throw new Error("additional_bindings are nested");
  return [rule, ...rule.additionalBindings].map(toHttpPattern);
}

function toHttpPattern(rule: HttpRule): HttpPattern {
  const { body, responseBody } = rule;
  const { pattern } = rule;
  if (pattern.case === undefined) throw new Error("a binding has no method and path");
  if (pattern.case !== "custom") {
    return { httpMethod: pattern.case.toUpperCase(), pathTemplate: pattern.value, body, responseBody };
  }
  const { kind, path } = pattern.value;
  if (!token.test(kind)) throw new Error(`custom kind "${kind}" is no HTTP method`);
  return { httpMethod: kind, pathTemplate: path, body, responseBody };
}
