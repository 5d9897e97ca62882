/**
 * Which routes do the rules define? Runs once, at the start: rules (http-rule) → bindings (binding) → trie
 * (route-table), checked as a whole (reachability). Requests go to the trie and to their binding.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ReadJsonOptions, WriteJsonOptions } from "../json/index.ts";
import type { BindingOptions, RestBinding } from "./binding.ts";
import { compileBinding } from "./binding.ts";
import type { ErrorRecordPolicy } from "./error-to-rest.ts";
import type { FindHttpRule, HttpPattern, OutsideHttpRule } from "./http-rule.ts";
import { createHttpRuleFinder, selectorOf, toHttpPatterns } from "./http-rule.ts";
import type { PathTemplate } from "./path-template.ts";
import { mayLookLikeError } from "./stream-form.ts";
import { isPathPrefix } from "./raw-path.ts";
import type { OnIgnored } from "./request-reader.ts";
import { findShadowedBindings } from "./reachability.ts";
import { anyMethod, type RouteMatch, RouteTable } from "./route-table.ts";
import { RuleProblem } from "./rule-problem.ts";

/** Options of REST and JSON: how they differ from the standard mapping. */
export interface RestOptions {
  /** The status of an answer of type google.protobuf.Empty: 204 without a body, or 200 with `{}`. Default 200. */
  readonly emptyResponse?: 200 | 204;
  /** The form of an error. Default: google.rpc.Status as JSON, with the HTTP status of its code. */
  readonly errorRecord?: ErrorRecordPolicy;
  /** How JSON is read, by the RPC protocols and on REST. REST has a rule of its own for unknown fields. */
  readonly json?: ReadJsonOptions;
  /**
   * Selects services that ignore what others refuse: unknown query parameters, JSON fields and enum value names, and
   * fields that the path sets. What is ignored never has an effect.
   */
  readonly lenient?: (service: DescService) => boolean;
  /** Called when a lenient service has ignored something. */
  readonly onIgnored?: OnIgnored;
  /**
   * Selects services whose bodies may repeat a field of the path, as happens when a resource is sent back the way it
   * was read (AIP-134). A different value is refused, even where `lenient`.
   */
  readonly sameValueAsPath?: (service: DescService) => boolean;
  /**
   * Selects services whose PATCH requests without an update mask get one from the body's fields, as in grpc-gateway.
   */
  readonly updateMaskFromBody?: (service: DescService) => boolean;
  /** Selects services whose streams wrap messages as `{"result": …}`, errors as `{"error": …}`, like grpc-gateway. */
  readonly streamInResults?: (service: DescService) => boolean;
  /** Leaves RPCs that have a rule out of REST, by selector: `package.Service.Method`. */
  readonly omit?: readonly string[];
  /** Rules from outside the definition. Each replaces the annotation of its RPC. */
  readonly rules?: readonly OutsideHttpRule[];
  /**
   * Ignores those of the {@link rules} whose RPCs are not registered here, such as those of the mixins of a service
   * config. A selector that names no RPC of a service that is registered here is refused in any case.
   */
  readonly ignoreUnregistered?: boolean;
  /** Decodes `%2F` in path variables of several segments too; `fully_decode_reserved_expansion` of google.api.Http. */
  readonly fullyDecodeReservedExpansion?: boolean;
}

/** Options of {@link compileRestRoutes}: how REST requests are read and answers are written. */
export interface RestRouteOptions extends Omit<RestOptions, "errorRecord" | "json"> {
  /** How JSON bodies are read. `unknownFields` follows `lenient`. */
  readonly readJson?: Omit<ReadJsonOptions, "unknownFields">;
  /** How JSON answers are written. */
  readonly writeJson?: WriteJsonOptions;
}

/** The server that the routes are part of, with which the rules must not collide. */
export interface RouteConstraints {
  /** Paths that something else answers before REST is tried. Those of the RPCs themselves need not be listed. */
  readonly reservedPaths?: Iterable<string>;
  /** The path that everything is served under; templates do not include it. */
  readonly requestPathPrefix?: string;
  /** The HTTP methods that the server's parser accepts. Default: every token. */
  readonly parsedMethods?: Pick<ReadonlySet<string>, "has">;
}

/** The result of matching a REST request by method and path. */
export type RestMatch = RouteMatch<RestBinding>;

/** The routes of a set of RPCs. */
export interface RestRoutes {
  /** Every binding, in the order of declaration. */
  readonly bindings: readonly RestBinding[];
  /**
   * Finds the binding of a request.
   *
   * @param httpMethod - as it was sent; methods are case-sensitive. HEAD finds GET where it has no rule
   * @param path - without the query, percent escapes as they were sent
   */
  match(httpMethod: string, path: string): RestMatch;
}

/**
 * Compiles the rules of RPCs, after checking that each rule can be reached. RPCs without a rule are skipped.
 *
 * @throws Error with every problem of every rule, one per line
 */
export function compileRestRoutes(
  methods: Iterable<DescMethod>,
  options: RestRouteOptions = {},
  constraints: RouteConstraints = {},
): RestRoutes {
  const compiler = new Compiler([...methods], options, constraints);
  const { table, bindings } = compiler.compile();
  return { bindings, match: table.match.bind(table) };
}

/** Compiles rules and collects their problems, so that one failed start reports all of them. */
class Compiler {
  readonly #methods: readonly DescMethod[];
  readonly #options: RestRouteOptions;
  readonly #constraints: RouteConstraints;
  readonly #table: RouteTable<RestBinding>;
  readonly #bindings: RestBinding[] = [];
  readonly #problems: string[] = [];

  constructor(methods: readonly DescMethod[], options: RestRouteOptions, constraints: RouteConstraints) {
    this.#methods = methods;
    this.#options = options;
    this.#constraints = constraints;
    this.#table = new RouteTable(options.fullyDecodeReservedExpansion === true ? "decoded" : "kept");
  }

  compile(): { readonly table: RouteTable<RestBinding>; readonly bindings: readonly RestBinding[] } {
    const { requestPathPrefix = "", reservedPaths = [] } = this.#constraints;
    if (requestPathPrefix !== "" && !isPathPrefix(requestPathPrefix)) {
      this.#problems.push(`requestPathPrefix "${requestPathPrefix}" is no path such as "/api"`);
    }
    const { rules = [], ignoreUnregistered = false } = this.#options;
    const findRule =
      this.#collect("rules", () => createHttpRuleFinder(rules, this.#methods, ignoreUnregistered)) ??
      createHttpRuleFinder([], [], false);
    const selectors = new Set(this.#methods.map(selectorOf));
    for (const selector of this.#options.omit ?? []) {
      if (!selectors.has(selector)) this.#problems.push(`omit: selector "${selector}" is no RPC`);
    }
    const reserved = new Set([...this.#methods.map(procedureOf), ...reservedPaths]);
    for (const method of this.#methods) this.#addMethod(method, findRule, reserved);
    for (const { binding, by } of findShadowedBindings(this.#table, this.#bindings)) {
      this.#problems.push(`${describe(binding)}: is never reached, ${describe(by)} takes every path of it`);
    }
    if (this.#problems.length > 0) throw new Error(`the HTTP rules have problems:\n${this.#problems.join("\n")}`);
    return { table: this.#table, bindings: this.#bindings };
  }

  #addMethod(method: DescMethod, findRule: FindHttpRule, reserved: ReadonlySet<string>): void {
    if (this.#options.omit?.includes(selectorOf(method)) === true) return;
    const rule = findRule(method);
    const patterns = rule && this.#collect(selectorOf(method), () => toHttpPatterns(rule));
    for (const pattern of patterns ?? []) {
      this.#collect(`${selectorOf(method)}: ${pattern.httpMethod} ${pattern.pathTemplate}`, () => {
        this.#addPattern(method, pattern, reserved);
      });
    }
  }

  #addPattern(method: DescMethod, pattern: HttpPattern, reserved: ReadonlySet<string>): void {
    const { parsedMethods } = this.#constraints;
    if (pattern.httpMethod !== anyMethod && parsedMethods?.has(pattern.httpMethod) === false) {
      throw new RuleProblem("has a method that no parser of HTTP/1.1 lets through");
    }
    const options = bindingOptions(method, this.#options);
    const answersStream = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
    if (answersStream && !options.streamInResults && mayLookLikeError(method.output, pattern.responseBody)) {
      throw new RuleProblem("streams what could look like an error; rest.streamInResults tells them apart");
    }
    const binding = compileBinding(method, pattern, options);
    const { template } = binding;
    const path = fixedPathOf(template);
    if (path !== undefined && reserved.has(path)) throw new RuleProblem("has the path of an RPC or an endpoint");
    const taken = this.#table.add(pattern.httpMethod, template, binding);
    if (taken !== undefined) throw new RuleProblem(`is the same as ${describe(taken)}`);
    this.#bindings.push(binding);
  }

  #collect<Value>(where: string, compile: () => Value): Value | undefined {
    try {
      return compile();
    } catch (error) {
      if (!(error instanceof RuleProblem)) throw error;
      this.#problems.push(`${where}: ${error.message}`);
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

// The path of a template without wildcards. Templates with a verb are safe: no RPC has a colon in its path.
function fixedPathOf(template: PathTemplate): string | undefined {
  const literals = template.segments.filter((segment) => segment.kind === "literal");
  const isFixed = literals.length === template.segments.length && template.verb === undefined;
  return isFixed ? `/${literals.map((segment) => segment.text).join("/")}` : undefined;
}

function bindingOptions(method: DescMethod, options: RestRouteOptions): BindingOptions {
  const lenient = options.lenient?.(method.parent) === true;
  return {
    emptyResponse: options.emptyResponse ?? 200,
    readJson: { ...options.readJson, unknownFields: lenient ? "ignore" : "reject" },
    writeJson: options.writeJson ?? {},
    lenient,
    sameValueAsPath: options.sameValueAsPath?.(method.parent) === true,
    updateMaskFromBody: options.updateMaskFromBody?.(method.parent) === true,
    streamInResults: options.streamInResults?.(method.parent) === true,
    onIgnored: options.onIgnored,
  };
}
