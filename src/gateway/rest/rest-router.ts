/**
 * Which message is this URL? The REST side of a set of RPCs, made from their `google.api.http` rules.
 *
 * Flow: rules (http-rule) → bindings (binding) → trie (route-table), proved as a whole (route-proof). Per
 * request: match → decode → (the RPC) → encode, or error-to-rest. This room knows nothing of sockets, and
 * of services only descriptors.
 */
import type { DescMethod, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import type { ReadJsonOptions, WriteJsonOptions } from "../json/index.ts";
import type { BindingOptions, OnIgnored, RestBinding } from "./binding.ts";
import { compileBinding } from "./binding.ts";
import type { HttpPattern } from "./http-rule.ts";
import { readHttpRule, toHttpPatterns } from "./http-rule.ts";
import type { OutsideHttpRule, RulesBySelector } from "./http-rules-config.ts";
import { selectHttpRules, selectorOf } from "./http-rules-config.ts";
import type { PathTemplate } from "./path-template.ts";
import type { DeclaredRoute } from "./route-proof.ts";
import { findShadowedRoutes } from "./route-proof.ts";
import { RouteTable } from "./route-table.ts";

/** How REST reads and writes. */
export interface RestRouterOptions {
  /** The status of an answer of type google.protobuf.Empty. Default 200, with `{}` as the body. */
  readonly emptyResponse?: 200 | 204;
  /** How JSON bodies are read. `unknownFields` follows `lenient`. */
  readonly readJson?: Omit<ReadJsonOptions, "unknownFields">;
  /** How JSON answers are written. */
  readonly writeJson?: WriteJsonOptions;
  /**
   * Services that ignore what they would otherwise refuse: unknown query parameters and JSON fields, and
   * those that the path has already bound. What is ignored never has an effect.
   */
  readonly lenient?: (service: DescService) => boolean;
  /** Called where a lenient service has ignored something, with the names as the client wrote them. */
  readonly onIgnored?: OnIgnored;
  /** Rules from outside of the definition. Each takes the place of its RPC's annotation. */
  readonly rules?: readonly OutsideHttpRule[];
  /** Decodes `%2F` in path variables of several segments too; `fully_decode_reserved_expansion` of google.api.Http. */
  readonly fullyDecodeReservedExpansion?: boolean;
  /** Paths that something else answers before REST is asked. Those of the RPCs themselves are known. */
  readonly reservedPaths?: Iterable<string>;
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
 * Compiles the rules of RPCs and proves that each can be reached. RPCs without a rule are left alone.
 *
 * @throws Error with every problem of every rule, one per line
 */
export function createRestRouter(methods: Iterable<DescMethod>, options: RestRouterOptions = {}): RestRouter {
  const compiler = new Compiler([...methods], options);
  const { table, bindings } = compiler.compile();
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

/** Compiles rules and gathers their problems, so that one start tells of all of them. */
class Compiler {
  readonly #methods: readonly DescMethod[];
  readonly #options: RestRouterOptions;
  readonly #table: RouteTable<RestBinding>;
  readonly #routes: DeclaredRoute<RestBinding>[] = [];
  readonly #problems: string[] = [];

  constructor(methods: readonly DescMethod[], options: RestRouterOptions) {
    this.#methods = methods;
    this.#options = options;
    this.#table = new RouteTable(options.fullyDecodeReservedExpansion === true ? "decoded" : "kept");
  }

  compile(): { readonly table: RouteTable<RestBinding>; readonly bindings: readonly RestBinding[] } {
    const outside = this.#collect("rules", () => selectHttpRules(this.#options.rules ?? [], this.#methods));
    const reserved = new Set([...this.#methods.map(procedureOf), ...(this.#options.reservedPaths ?? [])]);
    for (const method of this.#methods) this.#addMethod(method, outside, reserved);
    for (const { route, by } of findShadowedRoutes(this.#table, this.#routes)) {
      this.#problems.push(`${describe(route.target)}: is never reached, ${describe(by)} takes every path of it`);
    }
    if (this.#problems.length > 0) throw new Error(`the HTTP rules have problems:\n${this.#problems.join("\n")}`);
    return { table: this.#table, bindings: this.#routes.map((route) => route.target) };
  }

  #addMethod(method: DescMethod, outside: RulesBySelector | undefined, reserved: ReadonlySet<string>): void {
    const rule = outside?.get(selectorOf(method)) ?? readHttpRule(method);
    const patterns = rule && this.#collect(selectorOf(method), () => toHttpPatterns(rule));
    for (const pattern of patterns ?? []) {
      this.#collect(`${selectorOf(method)}: ${pattern.httpMethod} ${pattern.pathTemplate}`, () => {
        this.#addPattern(method, pattern, reserved);
      });
    }
  }

  #addPattern(method: DescMethod, pattern: HttpPattern, reserved: ReadonlySet<string>): void {
    if (!isUnary(method)) throw new Error("is a streaming RPC, which has no REST side yet");
    const binding = compileBinding(method, pattern, bindingOptions(method, this.#options));
    const { template } = binding;
    const path = fixedPathOf(template);
    if (path !== undefined && reserved.has(path)) throw new Error("has the path of an RPC or an endpoint");
    const taken = this.#table.add(pattern.httpMethod, template, binding);
    if (taken !== undefined) throw new Error(`is the same as ${describe(taken)}`);
    this.#routes.push({ httpMethod: pattern.httpMethod, template, target: binding });
  }

  #collect<Value>(where: string, compile: () => Value): Value | undefined {
    try {
      return compile();
    } catch (error) {
      this.#problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }
}

function describe({ method, pattern }: RestBinding): string {
  return `${selectorOf(method)}: ${pattern.httpMethod} ${pattern.pathTemplate}`;
}

function procedureOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

// The one path of a template without wild cards. A verb makes no difference: no RPC has a colon in its path.
function fixedPathOf(template: PathTemplate): string | undefined {
  const literals = template.segments.filter((segment) => segment.kind === "literal");
  const isFixed = literals.length === template.segments.length && template.verb === undefined;
  return isFixed ? `/${literals.map((segment) => segment.text).join("/")}` : undefined;
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
