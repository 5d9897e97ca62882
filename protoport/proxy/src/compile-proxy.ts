import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { compileNodeRoutes, type Routes, type FaultReporter, withoutTools } from "@protoport/gateway/forward";
import type { GatewayOptions } from "@protoport/gateway";
import { refusePromise } from "@protoport/gateway/options";
import { type RestOptions, selectorOf, withoutRpcs } from "@protoport/gateway/rest";
import {
  assignServices,
  type LocalTypes,
  findRouteClashes,
  type ProxiedUpstream,
  type RouteClaims,
  typesOf,
  type UpstreamDescriptors,
} from "./forward/index.ts";
import type { ServiceOwners } from "./upstreams/index.ts";

/** The result of {@link compileProxy}. */
export interface CompiledProxy {
  readonly routes: Routes;
  /** The REST options without the routes that belong to other upstreams. */
  readonly rest: RestOptions;
  /** The services that each upstream serves. */
  readonly services: readonly (readonly DescService[])[];
  /** The services and RPCs that the option `visibility` hides, by full name. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. Empty without the option `visibility`. */
  readonly visibilityLabels: ReadonlySet<string>;
  /** Each upstream's conflicts, as in {@link DescriptorReload}. */
  readonly conflicts: readonly (readonly string[])[];
  /**
   * Each upstream's routes that belong to another owner. New descriptors with such routes must not be used. Of
   * descriptors that are in use already, no annotated routes are served.
   */
  readonly clashes: readonly (readonly string[])[];
}

/** The input for {@link compileProxy} that depends only on the options, not on descriptors. */
interface CompileInput {
  readonly upstreams: readonly ProxiedUpstream[];
  readonly owners: ServiceOwners;
  /** The RPCs that the process serves itself. */
  readonly localMethods: readonly DescMethod[];
  readonly local: LocalTypes;
  readonly options: Omit<GatewayOptions, "routes"> & Partial<Pick<GatewayOptions, "routes">>;
  readonly report: FaultReporter;
}

/** Creates the handlers and routes for all RPCs. The generator yields a few times per RPC. */
export function* compileProxy(
  { upstreams, owners, localMethods, local, options, report }: CompileInput,
  descriptors: readonly UpstreamDescriptors[],
): Generator<void, CompiledProxy> {
  const { routes: registerLocal, jsonOptions } = options;
  const names = upstreams.map(({ connections }) => connections.name);
  const offers = descriptors.map(({ services }, at) => ({
    services,
    isUnlimited: upstreams[at]?.isReflected === true && (upstreams[at].options.services ?? []).length === 0,
    name: names[at] ?? "",
  }));
  const assigned = assignServices(offers, new Set(localMethods.map(({ parent }) => parent.typeName)));
  const claims = claimsOf(upstreams, descriptors, assigned.services);
  const rules = [...upstreams.flatMap((upstream) => upstream.options.rules ?? []), ...(options.rest?.rules ?? [])];
  const hiddenRpcs = new Set(descriptors.flatMap((each) => [...each.hiddenRpcs]));
  // An RPC that the proxy serves is not hidden, even if another upstream hides the same name.
  for (const { methods } of assigned.services.flat()) {
    for (const method of methods) hiddenRpcs.delete(selectorOf(method));
  }
  const given = withoutRpcs({ ...options.rest, rules }, hiddenRpcs);
  const { rest, conflicts, clashes } = yield* compileRestOptions(given, claims, { owners, localMethods, options });
  const tools = holdTools(options.mcp, claims);
  const proxied = new Set(assigned.services.flat());
  const registrations: ((router: ConnectRouter) => void)[] = [];
  for (const [at, upstream] of upstreams.entries()) {
    // All upstreams' types are needed, because a google.protobuf.Any may contain any type.
    const definitions = [...descriptors.slice(at, at + 1), ...descriptors.toSpliced(at, 1), ...local.definitions];
    registrations.push(yield* upstream.prepare(assigned.services[at] ?? [], definitions));
  }
  const registry = local.registry ?? (yield* typesOf(descriptors));
  const register = (router: ConnectRouter): unknown => {
    const registered: unknown = registerLocal?.(router);
    for (const registerUpstream of registrations) registerUpstream(router);
    // The result is returned so that the router can refuse a promise.
    return registered;
  };
  const routes = yield* compileNodeRoutes(
    { ...options, ...tools.options, routes: register, rest, jsonOptions: { ...jsonOptions, registry } },
    report,
    // equivalent mutant: validating the proxied messages again would only make calls slower.
    { isValidated: (service) => proxied.has(service), definitions: [...descriptors, ...local.definitions] },
  );
  return {
    routes,
    rest,
    services: assigned.services,
    hiddenRpcs,
    visibilityLabels: new Set(
      [routes.visibilityLabels, ...descriptors.map(({ labels }) => labels)].flatMap((all) => [...all]),
    ),
    conflicts: upstreams.map((_, at) =>
      [assigned.conflicts, clashes, conflicts, tools.conflicts].flatMap((each) => each[at] ?? []),
    ),
    clashes,
  };
}

/** Returns the RPCs and routes that each upstream claims. */
function claimsOf(
  upstreams: readonly ProxiedUpstream[],
  descriptors: readonly UpstreamDescriptors[],
  services: readonly (readonly DescService[])[],
): readonly RouteClaims[] {
  return upstreams.map(({ connections: { name }, isReflected }, at) => {
    const methods = (services[at] ?? []).flatMap((service) => service.methods);
    // The routes and tools of an upstream could belong to an earlier one that has not responded yet.
    const unknown = isReflected ? descriptors.findIndex(({ isUnknown }, other) => isUnknown && other < at) : -1;
    return { name, methods, isReflected, waitsFor: upstreams[unknown]?.connections.name };
  });
}

/** Returns the REST options without the annotated routes of upstreams that wait or have a clash. */
function* compileRestOptions(
  rest: RestOptions & Required<Pick<RestOptions, "rules">>,
  claims: readonly RouteClaims[],
  { owners, localMethods, options }: Pick<CompileInput, "owners" | "localMethods" | "options">,
): Generator<void, Pick<CompiledProxy, "rest" | "conflicts" | "clashes">> {
  if (claims.length + localMethods.length < 2) return { rest, conflicts: [], clashes: [] };
  const { endpoints = [], mcp } = options;
  const methods = [...localMethods, ...claims.flatMap((claim) => claim.methods)];
  const selectors = new Set(methods.map(selectorOf));
  // With several upstreams, unknown selectors are allowed, so that one missing RPC does not stop all upstreams.
  const isLoose = claims.length > 1;
  const paths = endpoints.filter(({ atRoot }) => atRoot !== true).map(({ path }) => path);
  const { rules } = rest;
  const omit = (rest.omit ?? []).filter((selector) => !isLoose || selectors.has(selector));
  const reservedPaths = new Set([...paths, ...(mcp === undefined ? [] : [mcp.path])]);
  const found = yield* findRouteClashes(claims, { localMethods, reservedPaths, rules, omit, owners });
  const conflicts = claims.map(({ waitsFor }, at) =>
    waitsFor === undefined || found[at]?.held.length === 0
      ? []
      : [`its REST routes are not served before the descriptors of ${waitsFor} are known`],
  );
  const notServed = [...omit, ...found.flatMap(({ held }) => held)];
  const served = { ...rest, omit: notServed, ...(isLoose && { ignoreUnregistered: true }) };
  return { rest: served, conflicts, clashes: found.map(({ clashes }) => clashes) };
}

/**
 * Removes the tools of upstreams that wait for an earlier one, because a program may give the tools of both upstreams
 * the same name.
 */
function holdTools(mcp: GatewayOptions["mcp"], claims: readonly RouteClaims[]): HeldTools {
  if (mcp === undefined) return { options: {}, conflicts: [] };
  const held = new Set<DescMethod>();
  const conflicts = claims.map(({ methods, waitsFor }) => {
    if (waitsFor === undefined || mcp.toolNamesOf(methods).size === 0) return [];
    for (const method of methods) held.add(method);
    return [`its tools are not served before the descriptors of ${waitsFor} are known`];
  });
  return { options: { mcp: withoutTools(mcp, held) }, conflicts };
}

/** The result of {@link holdTools}. */
interface HeldTools {
  readonly options: Pick<GatewayOptions, "mcp">;
  readonly conflicts: CompiledProxy["conflicts"];
}

/** Returns the RPCs that a function registers. */
export function routedMethodsOf(routes: GatewayOptions["routes"] | undefined): readonly DescMethod[] {
  if (routes === undefined) return [];
  const router = createConnectRouter();
  refusePromise<unknown>(routes(router), "routes must register the services synchronously");
  return router.handlers.map(({ method }) => method);
}
