import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { runSteps, toOneLine, toShortLine, withCode } from "../../../http/index.ts";
import { memoize } from "../../../protobuf/index.ts";
import { compileBinding, hasResponseStream, type RestBinding } from "./binding.ts";
import {
  createHttpRuleFinder,
  type FindHttpRule,
  type HttpPattern,
  procedureOf,
  RuleProblem,
  selectorOf,
  toHttpPatterns,
  UnknownFieldProblem,
} from "./http-rule.ts";
import { type PathTemplate, printPathTemplate } from "./path-template.ts";
import { isPathPrefix } from "./raw-path.ts";
import { type BindingOptions, bindingOptionsOf, type RestRouteOptions } from "./rest-options.ts";
import { anyMethod, type RouteMatch, RouteTable } from "./route-table.ts";
import { isAmbiguousWithError } from "./stream-form.ts";

/** A server's constraints on the routes. */
export interface RouteConstraints {
  /** Paths that endpoints or other protocols serve. The paths of RPCs need not be listed. */
  readonly reservedPaths?: Iterable<string>;
  /** The prefix for all paths. Templates do not include the prefix. */
  readonly requestPathPrefix?: string;
  /** The HTTP methods that the server's parser accepts. Default: any token. */
  readonly parsedMethods?: Pick<ReadonlySet<string>, "has">;
  /** Returns whether the option `visibility` hides fields of an RPC's messages, at any depth. Default: no fields. */
  readonly hidesFields?: (method: DescMethod) => boolean;
}

/** The result from matching a REST request by method and path. */
export type RestMatch = RouteMatch<RestBinding>;

/** The routes of a set of RPCs. */
export interface RestRoutes {
  /** All bindings, in declaration order. */
  readonly bindings: readonly RestBinding[];
  /**
   * Finds a request's binding.
   *
   * @param httpMethod - the case-sensitive method as sent, where HEAD uses the rules for GET if no HEAD rule matches
   * @param path - the path without the query, with percent escapes as sent
   * @param literalsAsSent - whether literals and verbs match only with the escapes of {@link printTemplateLiteral},
   * instead of any escapes (default false)
   */
  match(httpMethod: string, path: string, literalsAsSent?: boolean): RestMatch;
}

/**
 * Compiles the rules of RPCs, and checks that a request can reach each rule. Skips RPCs without a rule.
 *
 * @throws Error with the code ERR_HTTP_RULES, and one line for each problem in the rules
 */
export function compileRestRoutes(
  methods: Iterable<DescMethod>,
  options: RestRouteOptions = {},
  constraints: RouteConstraints = {},
): RestRoutes {
  return runSteps(compileInSteps(methods, options, constraints));
}

/** Compiles rules as {@link compileRestRoutes} does. Yields after each RPC and each binding. */
export function* compileInSteps(
  methods: Iterable<DescMethod>,
  options: RestRouteOptions = {},
  constraints: RouteConstraints = {},
): Generator<void, RestRoutes> {
  const { routes, problems } = yield* new Compiler([...methods], options, constraints).compile();
  if (problems.length > 0) {
    throw withCode(new Error(`invalid HTTP rules:\n${problems.join("\n")}`), "ERR_HTTP_RULES");
  }
  return routes;
}

/** Compiles rules as {@link compileRestRoutes} does, but returns the problems along with the valid bindings. */
export function checkRestRoutes(
  methods: Iterable<DescMethod>,
  options: RestRouteOptions = {},
  constraints: RouteConstraints = {},
): CheckedRoutes {
  return runSteps(new Compiler([...methods], options, constraints).compile());
}

interface CheckedRoutes {
  readonly routes: RestRoutes;
  readonly problems: readonly string[];
}

/** Compiles rules and collects all problems, so that an author can fix all problems together. */
class Compiler {
  readonly #methods: readonly DescMethod[];
  readonly #options: RestRouteOptions;
  readonly #constraints: RouteConstraints;
  readonly #table: RouteTable<RestBinding>;
  readonly #bindings: RestBinding[] = [];
  readonly #problems: string[] = [];
  readonly #optionsOf: (service: DescService) => BindingOptions;

  constructor(methods: readonly DescMethod[], options: RestRouteOptions, constraints: RouteConstraints) {
    this.#methods = methods;
    this.#options = options;
    this.#constraints = constraints;
    this.#table = new RouteTable(options.fullyDecodeReservedExpansion);
    this.#optionsOf = memoize((service) => bindingOptionsOf(service, options));
  }

  *compile(): Generator<void, CheckedRoutes> {
    const { requestPathPrefix = "", reservedPaths = [] } = this.#constraints;
    if (requestPathPrefix !== "" && !isPathPrefix(requestPathPrefix)) {
      this.#problems.push(`requestPathPrefix must be a path such as "/api", got "${requestPathPrefix}"`);
    }
    const { rules = [], ignoreUnregistered = false } = this.#options;
    const findRule =
      this.#collect("rules", () => createHttpRuleFinder(rules, this.#methods, ignoreUnregistered)) ??
      createHttpRuleFinder([], [], false);
    const selectors = new Set(this.#methods.map(selectorOf));
    for (const selector of this.#options.omit ?? []) {
      if (!selectors.has(selector))
        this.#problems.push(`omit: selector "${toShortLine(selector)}" does not match an RPC`);
    }
    const reserved = new Set([...this.#methods.map(procedureOf), ...reservedPaths]);
    const omitted = new Set(this.#options.omit);
    for (const method of this.#methods) {
      if (!omitted.has(selectorOf(method))) this.#addMethod(method, findRule, reserved);
      yield;
    }
    for (const { binding, by } of yield* findShadowedBindings(this.#table, this.#bindings)) {
      const shadowingBindings = `${by.map(describeBinding).join(" and ")} ${by.length === 1 ? "matches" : "match"} all of its paths`;
      const problem = `is never reached because ${shadowingBindings}; to exclude an RPC, add it to rest.omit`;
      this.#problems.push(`${describeBinding(binding)}: ${problem}`);
    }
    const routes = { bindings: this.#bindings, match: this.#table.match.bind(this.#table) };
    return { routes, problems: this.#problems };
  }

  #addMethod(method: DescMethod, findRule: FindHttpRule, reserved: ReadonlySet<string>): void {
    const rule = findRule(method);
    const patterns = rule && this.#collect(selectorOf(method), () => toHttpPatterns(rule));
    const { hidesFields = () => false } = this.#constraints;
    for (const pattern of patterns ?? []) {
      const where = `${selectorOf(method)}: ${pattern.httpMethod} ${toOneLine(pattern.pathTemplate)}`;
      this.#collect(where, () => {
        try {
          this.#addPattern(method, pattern, reserved);
        } catch (error) {
          if (!(error instanceof UnknownFieldProblem) || !hidesFields(method)) throw error;
          throw new RuleProblem(`${error.message}, or visibility hides it`);
        }
      });
    }
  }

  #addPattern(method: DescMethod, pattern: HttpPattern, reserved: ReadonlySet<string>): void {
    const { parsedMethods } = this.#constraints;
    if (pattern.httpMethod !== anyMethod && parsedMethods?.has(pattern.httpMethod) === false) {
      throw new RuleProblem("the HTTP/1.1 parser does not accept this method");
    }
    const options = this.#optionsOf(method.parent);
    if (
      hasResponseStream(method) &&
      !options.streamInResults &&
      isAmbiguousWithError(method.output, pattern.responseBody, options.errors)
    ) {
      throw new RuleProblem("messages of this stream could be mistaken for an error; set the option streamInResults");
    }
    const binding = compileBinding(method, pattern, options);
    const { template } = binding;
    const path = fixedPathOf(template);
    if (path !== undefined && reserved.has(path))
      throw new RuleProblem("the path is already used by an RPC or an endpoint");
    const existing = this.#table.add(pattern.httpMethod, template, binding);
    if (existing !== undefined) throw new RuleProblem(`matches the same requests as ${describeBinding(existing)}`);
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

/** Returns a binding's name for messages: `package.Service.Method: GET /v1/{id}`. */
export function describeBinding({ method, pattern }: RestBinding): string {
  return `${selectorOf(method)}: ${pattern.httpMethod} ${toOneLine(pattern.pathTemplate)}`;
}

/**
 * Returns the only path of a template without wildcards and verb, or `undefined` for other templates. A template with a
 * verb cannot collide with an RPC or an endpoint, because their paths contain no colon.
 */
export function fixedPathOf(template: PathTemplate): string | undefined {
  const literals = template.segments.filter((segment) => segment.kind === "literal");
  const isFixed = literals.length === template.segments.length && template.verb === undefined;
  return isFixed ? `/${literals.map((segment) => segment.text).join("/")}` : undefined;
}

/**
 * Finds bindings that no request can reach, and the more specific bindings that match all paths of an unreachable
 * binding.
 *
 * Each binding is tried with example paths. `*` becomes a string that is not a literal in any template, and `**`
 * becomes up to as many of these strings as the longest template has segments. A binding that no example path reaches
 * is shadowed. Yields after each binding.
 */
function* findShadowedBindings(
  table: RouteTable<RestBinding>,
  bindings: readonly RestBinding[],
): Generator<void, readonly ShadowedBinding[]> {
  const shadowed: ShadowedBinding[] = [];
  const text = unmatchedText(bindings);
  const maxSegments = maximum(bindings.map(({ template }) => template.segments.length));
  for (const binding of bindings) {
    const by = new Set<RestBinding>();
    for (const path of examplePaths(binding.template, text, maxSegments)) {
      const match = table.match(binding.pattern.httpMethod, path);
      if (match.kind === "binding") by.add(match.binding);
      if (by.has(binding)) break;
    }
    if (by.size > 0 && !by.has(binding)) shadowed.push({ binding, by: [...by] });
    yield;
  }
  return shadowed;
}

/** A binding, and the more specific bindings that match all of its paths. */
interface ShadowedBinding {
  readonly binding: RestBinding;
  readonly by: readonly RestBinding[];
}

function examplePaths(template: PathTemplate, text: string, maxSegments: number): readonly string[] {
  const literal = { kind: "literal", text } as const;
  const counts = template.segments.some((segment) => segment.kind === "**") ? maxSegments + 1 : 1;
  return Array.from({ length: counts }, (_, count) => {
    const segments = template.segments.flatMap((segment) => {
      if (segment.kind === "**") return Array.from({ length: count }, () => literal);
      return [segment.kind === "*" ? literal : segment];
    });
    return printPathTemplate({ segments, variables: [], verb: template.verb });
  });
}

// Returns a string that is longer than every literal, and so equals no literal.
function unmatchedText(bindings: readonly RestBinding[]): string {
  const literals = bindings.flatMap(({ template }) =>
    template.segments.filter((segment) => segment.kind === "literal"),
  );
  return "x".repeat(1 + maximum(literals.map((segment) => segment.text.length)));
}

// Math.max(...numbers) would overflow the stack with more than a hundred thousand numbers.
function maximum(numbers: readonly number[]): number {
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}
