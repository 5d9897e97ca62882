import type { DescMethod } from "@bufbuild/protobuf";
import {
  anyMethod,
  createHttpRuleFinder,
  type ExternalHttpRule,
  fixedPathOf,
  type HttpPattern,
  parsePathTemplate,
  procedureOf,
  type RouteShape,
  RuleProblem,
  selectorOf,
  templatesOverlap,
  toHttpPatterns,
} from "@protoport/gateway/rest";
import { RouteIndex } from "./route-index.ts";
import type { ServiceOwners } from "../upstreams/index.ts";

/** The data about an upstream that {@link assignRoutes} needs. */
export interface RouteClaims {
  /** The upstream's name in messages. */
  readonly name: string;
  readonly methods: readonly DescMethod[];
  /** Whether the upstream's annotated routes and tools are omitted until all earlier upstreams have been reached. */
  readonly waitsForEarlier: boolean;
  /** Whether the upstream has not been reached yet, so that its routes are unknown. */
  readonly isUnknown: boolean;
}

/** The data about a proxy that {@link assignRoutes} needs. */
export interface RouteContext {
  /** The RPCs that the process serves itself. */
  readonly localMethods: readonly DescMethod[];
  /** The paths for endpoints and other protocols. */
  readonly reservedPaths: ReadonlySet<string>;
  readonly rules: readonly ExternalHttpRule[];
  readonly omit: readonly string[];
  readonly owners: ServiceOwners;
}

/** The HTTP rules, and the RPCs without REST, that result from giving every route one owner. */
export interface AssignedRoutes {
  readonly rules: readonly ExternalHttpRule[];
  readonly omit: readonly string[];
  /**
   * Messages per upstream about omitted routes. A route belongs to another owner, as in
   * `route METHOD TEMPLATE belongs to NAME`, or waits for an earlier upstream.
   */
  readonly conflicts: readonly (readonly string[])[];
}

/** A route's owner, which is an upstream's index, this server, or a rule. */
type Owner = number | "this server" | "a rule of the configuration";

/**
 * Omits each upstream's REST routes that could get another upstream's calls. The operator's rules come first, then the
 * annotations of this process, then the annotations of the upstreams in their order. The first owner keeps a route.
 * The generator yields after each rule and RPC.
 */
export function assignRoutes(
  upstreams: readonly RouteClaims[],
  context: RouteContext,
): Generator<void, AssignedRoutes> {
  return new RouteAssignment(upstreams, context).assign();
}

/** Returns an earlier unreached upstream for which an upstream's routes and tools must wait, or `undefined`. */
export function unknownBefore(upstreams: readonly RouteClaims[], at: number): RouteClaims | undefined {
  if (upstreams[at]?.waitsForEarlier !== true) return undefined;
  return upstreams.slice(0, at).find(({ isUnknown }) => isUnknown);
}

class RouteAssignment {
  readonly #upstreams: readonly RouteClaims[];
  readonly #context: RouteContext;
  readonly #taken = new RouteIndex<Owner>();
  readonly #procedures = new Map<string, number>();
  /** The owner that serves a service, by the service's name. */
  readonly #offering = new Map<string, Owner>();
  readonly #findAnnotation = createHttpRuleFinder([], [], true);
  readonly #withoutAnnotation: ReadonlySet<string>;
  readonly #rules: ExternalHttpRule[];
  readonly #omit: string[];

  constructor(upstreams: readonly RouteClaims[], context: RouteContext) {
    this.#upstreams = upstreams;
    this.#context = context;
    this.#rules = [...context.rules];
    this.#omit = [...context.omit];
    this.#withoutAnnotation = new Set([...context.rules.map(({ selector = "" }) => selector), ...context.omit]);
    for (const [at, { methods }] of upstreams.entries()) {
      for (const method of methods) {
        const { typeName } = method.parent;
        this.#procedures.set(procedureOf(method), at);
        this.#offering.set(typeName, at);
      }
    }
    for (const { parent } of context.localMethods) this.#offering.set(parent.typeName, "this server");
  }

  *assign(): Generator<void, AssignedRoutes> {
    for (const rule of this.#context.rules) {
      const owner = this.#ownerOfRule(rule.selector ?? "");
      for (const shape of shapesOf(rule)) if (shape !== undefined) this.#taken.add({ ...shape, owner });
      yield;
    }
    for (const method of this.#context.localMethods) {
      for (const shape of this.#annotated(method))
        if (shape !== undefined) this.#taken.add({ ...shape, owner: "this server" });
    }
    const conflicts: (readonly string[])[] = [];
    for (const [at, { methods }] of this.#upstreams.entries()) {
      const ofUpstream = new Set<string>();
      for (const method of methods) {
        for (const conflict of this.#claim(at, method)) ofUpstream.add(conflict);
        yield;
      }
      conflicts.push([...ofUpstream]);
    }
    return { rules: this.#rules, omit: this.#omit, conflicts };
  }

  #ownerOfRule(selector: string): Owner {
    const service = selector.slice(0, selector.lastIndexOf("."));
    const { owners } = this.#context;
    const offering = this.#offering.get(service);
    if (offering === "this server") return offering;
    return owners.ownerOf(service) ?? offering ?? "a rule of the configuration";
  }

  /** Keeps the method's routes that have no other owner, and returns a message for each other route. */
  #claim(at: number, method: DescMethod): readonly string[] {
    const shapes = this.#annotated(method);
    if (shapes.length === 0) return [];
    const unknown = unknownBefore(this.#upstreams, at);
    if (unknown !== undefined) {
      this.#omit.push(selectorOf(method));
      return [`its REST routes are not served before the descriptors of ${unknown.name} are known`];
    }
    const conflicts: string[] = [];
    const kept = shapes.map((shape) => {
      const owner = shape === undefined ? undefined : this.#otherOwnerOf(at, shape);
      if (shape === undefined) return true;
      if (owner === undefined) this.#taken.add({ ...shape, owner: at });
      else conflicts.push(`route ${shape.httpMethod} ${shape.pathTemplate} belongs to ${this.#nameOf(owner)}`);
      return owner === undefined;
    });
    if (conflicts.length > 0) this.#keepOnly(method, kept);
    return conflicts;
  }

  #otherOwnerOf(at: number, shape: RouteShape): Owner | undefined {
    const path = fixedPathOf(shape.template) ?? "";
    if (this.#context.reservedPaths.has(path)) return "this server";
    const ofProcedure = this.#procedures.get(path);
    if (ofProcedure !== undefined && ofProcedure !== at) return ofProcedure;
    return this.#taken.otherOwnerOf(shape, at) ?? this.#ownerOfRpcPath(at, shape);
  }

  /**
   * Returns another upstream whose RPC paths the route may match, by the service patterns. Without this check, a
   * Connect call to an RPC that is not known yet could reach this upstream's REST route.
   */
  #ownerOfRpcPath(at: number, { httpMethod, template }: RouteShape): number | undefined {
    const isForRpcs = httpMethod === anyMethod || httpMethod === "POST" || httpMethod === "GET";
    if (!isForRpcs || !templatesOverlap(template, rpcPath)) return undefined;
    const [first] = template.segments;
    const { owners } = this.#context;
    if (first?.kind !== "literal") return owners.otherWithPatterns(at);
    const owner = fullName.test(first.text) ? owners.ownerOf(first.text) : owners.namedOwnerOf(first.text);
    return owner === at ? undefined : owner;
  }

  #nameOf(owner: Owner): string {
    return typeof owner === "number" ? (this.#upstreams[owner]?.name ?? "") : owner;
  }

  /** Returns the routes for a method's annotation, with `undefined` for each invalid template. */
  #annotated(method: DescMethod): readonly (AnnotatedRoute | undefined)[] {
    const rule = this.#withoutAnnotation.has(selectorOf(method)) ? undefined : this.#findAnnotation(method);
    return rule === undefined ? [] : shapesOf(rule);
  }

  /** Replaces a method's annotation with a rule that has only the kept routes. */
  #keepOnly(method: DescMethod, kept: readonly boolean[]): void {
    const rule = this.#findAnnotation(method);
    const bindings = rule === undefined ? [] : [rule, ...rule.additionalBindings];
    const [first, ...additionalBindings] = bindings.filter((_, at) => kept[at] === true);
    const selector = selectorOf(method);
    if (first === undefined) this.#omit.push(selector);
    else {
      const { pattern, body, responseBody } = first;
      const others = additionalBindings.map((each) => ({
        pattern: each.pattern,
        body: each.body,
        responseBody: each.responseBody,
      }));
      this.#rules.push({ selector, pattern, body, responseBody, additionalBindings: others });
    }
  }
}

/** A route from an annotation. */
interface AnnotatedRoute extends RouteShape, HttpPattern {}

/** Returns a rule's routes, with `undefined` for each invalid template, which the compilation reports. */
function shapesOf(rule: ExternalHttpRule): readonly (AnnotatedRoute | undefined)[] {
  const patterns = ifValid(() => toHttpPatterns(rule)) ?? [];
  return patterns.map((pattern) => {
    const template = ifValid(() => parsePathTemplate(pattern.pathTemplate));
    return template && { ...pattern, template };
  });
}

function ifValid<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RuleProblem) return undefined;
    throw error;
  }
}

/** A template for RPC paths, which have the form `/package.Service/Method`. */
const rpcPath = parsePathTemplate("/*/*");

/** A service name with a package. A path segment without a dot is a service name only if a pattern contains it. */
const fullName = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
