/**
 * Which message is this URL? The REST side of a set of RPCs, made from their `google.api.http` rules.
 *
 * Flow: rules (http-rule) → bindings (binding) → trie (route-table). Per request: match → decode → (the
 * RPC) → encode, or error-to-rest. This room knows nothing of sockets, and of services only descriptors.
 */
import type { DescMethod, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import type { ReadJsonOptions } from "../json/read-json.ts";
import type { WriteJsonOptions } from "../json/write-json.ts";
import type { BindingOptions, OnIgnored, RestBinding } from "./binding.ts";
import { compileBinding } from "./binding.ts";
import type { HttpPattern } from "./http-rule.ts";
import { readHttpRule, toHttpPatterns } from "./http-rule.ts";
import { RouteTable } from "./route-table.ts";

/** How REST reads and writes. */
export interface RestRouterOptions {
  /** The status of an answer of type google.protobuf.Empty. Default 200, with `{}` as the body. */
  readonly emptyResponse?: 200 | 204;
  /** How JSON bodies are read. `unknownFields` follows `lenient`. */
  readonly readJson?: Omit<ReadJsonOptions, "unknownFields">;
  /** How JSON answers are written. */
  readonly writeJson?: WriteJsonOptions;
  /** Services whose unknown query parameters and JSON fields are ignored. By default they are refused. */
  readonly lenient?: (service: DescService) => boolean;
  /** Called where a lenient service has ignored something, with the names as the client wrote them. */
  readonly onIgnored?: OnIgnored;
}

/** What a REST request leads to. */
export type RestMatch =
  | { readonly kind: "binding"; readonly binding: RestBinding; readonly captures: readonly string[] }
  /** The path is there, the method is not: 405, and `allow` is the value of the header `Allow`. */
  | { readonly kind: "method-not-allowed"; readonly allow: string }
  | { readonly kind: "not-found" }
  /** The path is none: 400. */
  | { readonly kind: "malformed"; readonly message: string };

/** The REST side of a set of RPCs. */
export interface RestRouter {
  /** Every binding, in the order of declaration. */
  readonly bindings: readonly RestBinding[];
  /**
   * Finds the binding of a request.
   *
   * @param httpMethod - as it was sent; methods are case-sensitive. HEAD finds GET where it has no rule
   * @param rawPath - without the query, percent escapes as they were sent
   */
  match(httpMethod: string, rawPath: string): RestMatch;
}

/**
 * Compiles the rules of RPCs. RPCs without a rule are left alone.
 *
 * @throws Error with every problem of every rule, one per line
 */
export function createRestRouter(methods: Iterable<DescMethod>, options: RestRouterOptions = {}): RestRouter {
  const problems: string[] = [];
  const bindings: RestBinding[] = [];
  const table = new RouteTable<RestBinding>();
  for (const method of methods) {
    for (const pattern of patternsOf(method, problems)) {
      const where = `${method.parent.typeName}.${method.name}: ${pattern.httpMethod} ${pattern.pathTemplate}`;
      collectProblems(problems, where, () => {
        if (!isUnary(method)) throw new Error("is a streaming RPC, which has no REST side yet");
        const binding = compileBinding(method, pattern, bindingOptions(method, options));
        const taken = table.add(pattern.httpMethod, binding.template, binding);
        if (taken !== undefined) throw new Error(`is the same as a rule of ${taken.method.toString()}`);
        bindings.push(binding);
      });
    }
  }
  if (problems.length > 0) throw new Error(`the HTTP rules have problems:\n${problems.join("\n")}`);
  return { bindings, match: (httpMethod, rawPath) => toRestMatch(table, httpMethod, rawPath) };
}

function toRestMatch(table: RouteTable<RestBinding>, httpMethod: string, rawPath: string): RestMatch {
  const match = table.match(httpMethod, rawPath);
  switch (match.kind) {
    case "route":
      return { kind: "binding", binding: match.target, captures: match.captures };
    case "method-not-allowed":
      return { kind: "method-not-allowed", allow: match.allow.join(", ") };
    default:
      return match;
  }
}

function patternsOf(method: DescMethod, problems: string[]): readonly HttpPattern[] {
  const rule = readHttpRule(method);
  if (rule === undefined) return [];
  let patterns: readonly HttpPattern[] = [];
  collectProblems(problems, `${method.parent.typeName}.${method.name}`, () => {
    patterns = toHttpPatterns(rule);
  });
  return patterns;
}

function collectProblems(problems: string[], where: string, compile: () => void): void {
  try {
    compile();
  } catch (error) {
    problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function bindingOptions(method: DescMethod, options: RestRouterOptions): BindingOptions {
  const lenient = options.lenient?.(method.parent) === true;
  return {
    emptyResponse: options.emptyResponse ?? 200,
    readJson: { ...options.readJson, unknownFields: lenient ? "ignore" : "reject" },
    writeJson: options.writeJson ?? {},
    lenient,
    onIgnored: options.onIgnored,
  };
}
