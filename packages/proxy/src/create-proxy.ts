import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectError, ConnectRouter } from "@connectrpc/connect";
import { createFaultReporter, type FaultReporter, type Routes, type Server } from "@plantstore/gateway/internal/serve";
import type { HttpEngine } from "@plantstore/gateway/listen";
import {
  assembleGateway,
  compileNodeRoutes,
  createNodeServer,
  type Gateway,
  gatewayOptionNames,
  type GatewayOptions,
} from "@plantstore/gateway/internal/create-gateway";
import { createHttpEngine } from "@plantstore/http-engine";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { createMethodCodecs, type UnaryRpc } from "@plantstore/gateway/internal/protocols";
import {
  createServerCodecs,
  type Described,
  type DescriptorReload,
  OpenUpstream,
  type ProxiedUpstream,
  proxiedUpstreamNames,
  ProxyTable,
  type ReloadReport,
  typesOf,
  unknownService,
} from "./forward/index.ts";

export type {
  DescriptorReload,
  DescriptorSource,
  ForwardRules,
  OpaqueMessage,
  ProxiedUpstream,
  ReloadReport,
  RetryPolicy,
} from "./forward/index.ts";
export { parseServiceRules } from "./service-config/index.ts";
export {
  createUpstream,
  type Upstream,
  type UpstreamLimits,
  type UpstreamLoad,
  type UpstreamLookup,
  type UpstreamOptions,
  type UpstreamTls,
} from "./upstreams/index.ts";

/** Options of {@link createProxy}: those of a gateway, whose handlers are the upstreams'. */
export interface ProxyOptions extends Omit<GatewayOptions, "engine" | "routes"> {
  readonly upstreams: readonly ProxiedUpstream[];
  /** Registers services that this process serves itself, such as its health. */
  readonly routes?: GatewayOptions["routes"];
  /** The HTTP that `listen` serves. Default the engine of `@plantstore/http-engine`. */
  readonly engine?: HttpEngine;
  /**
   * Called after each reload that has changed something, found problems, or found that those of the last one are gone,
   * also of those that nobody has asked for.
   */
  readonly onReload?: (report: ReloadReport) => void;
}

const proxyOptionNames: OptionNames<ProxyOptions> = {
  ...gatewayOptionNames,
  routes: true,
  upstreams: required,
  onReload: true,
};

/** A gateway before gRPC services, ready to listen by itself or to be mounted in another server. */
export interface ProxyGateway extends Gateway {
  /** The services that are proxied, as they are described by now. */
  readonly services: readonly DescService[];
  /** The services that are not proxied because types that they need are not described, each with the reason. */
  readonly omitted: readonly string[];
  /** The descriptor sets in use, one for each upstream in their order: comments are in them too. */
  readonly descriptorSets: readonly Uint8Array[];
  /**
   * How the descriptors of each upstream were read the last time, in their order. While those of one were never read, its
   * services are not known, and calls of unknown paths fail with `Unavailable`.
   */
  readonly descriptorReloads: readonly DescriptorReload[];
  /**
   * Reads the descriptors again, checks them as at the start, and puts them in use all at once; calls in flight go on by
   * the old ones. Never rejects: with problems, everything stays as it was, or the upstreams of several that could not be
   * read do.
   */
  reload(): Promise<ReloadReport>;
}

/**
 * Creates a gateway before gRPC services: callers speak gRPC, gRPC-Web, Connect or REST, upstreams gRPC over HTTP/2.
 *
 * Messages of binary protocols are passed on as bytes; only JSON is read and written by the descriptors. The deadline of
 * a caller is passed on, less what has passed, and a caller that leaves ends the upstream's call. No call is repeated
 * that may have been processed.
 *
 * Of several upstreams, those that cannot be reached when `"reflection"` asks them do not keep the others from starting:
 * they are asked again, with a back-off, and are served from then on.
 *
 * Connects when the first call comes. `drain` and `close` close the connections to upstreams as well.
 *
 * @returns a promise that rejects with an Error that lists every problem of the descriptors and the HTTP rules at once,
 * with what a {@link DescriptorSource} rejects with, or with a TypeError for an option that is wrong
 */
export async function createProxy(options: ProxyOptions): Promise<ProxyGateway> {
  refuseUnknownOptions(options, proxyOptionNames, "createProxy");
  for (const [at, upstream] of options.upstreams.entries()) {
    refuseUnknownOptions(upstream, proxiedUpstreamNames, `upstreams[${at}] of createProxy`);
  }
  const call = { ...options, binaryOptions: { ...options.binaryOptions, codegen: options.codegen ?? true } };
  const upstreams = options.upstreams.map((upstream) => new OpenUpstream(upstream, call));
  try {
    const report = createFaultReporter(options.onFault);
    const onUnknownPath = (path: string): ConnectError | undefined => {
      table.noteUnknownPath(path);
      return table.isIncomplete ? unknownService() : undefined;
    };
    const compile = (described: readonly Described[]): Routes => ({
      ...compileProxyRoutes(upstreams, described, options, report),
      onUnknownPath,
    });
    const table = new ProxyTable(upstreams, compile, report, options);
    await table.load().catch((error: unknown) => {
      // Nobody is left whom a late reading could serve.
      table.close();
      throw error;
    });
    const server = createNodeServer(options, table.routes, report);
    table.server = server;
    return openProxy(table, server, upstreams, options);
  } catch (error) {
    await closeAll(upstreams);
    throw error;
  }
}

function openProxy(
  table: ProxyTable,
  server: Server,
  upstreams: readonly OpenUpstream[],
  options: ProxyOptions,
): ProxyGateway {
  const stops = upstreams.map((upstream) => upstream.watchDescriptors(() => void table.reload()));
  const gateway = assembleGateway(server, { ...options, engine: options.engine ?? createHttpEngine() });
  const end = async (endGateway: () => Promise<void>): Promise<void> => {
    table.close();
    for (const stop of stops) stop();
    await endGateway();
    await closeAll(upstreams);
  };
  return {
    handler: gateway.handler,
    checkContinue: gateway.checkContinue,
    fetch: gateway.fetch,
    listen: (listenOptions) => gateway.listen(listenOptions),
    get load() {
      return gateway.load;
    },
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: (timeoutMs) => end(() => gateway.drain(timeoutMs)),
    close: () => end(() => gateway.close()),
    get services() {
      return table.services;
    },
    get omitted() {
      return table.omitted;
    },
    get descriptorSets() {
      return table.descriptorSets;
    },
    get descriptorReloads() {
      return table.reloads;
    },
    reload: () => table.reload(),
  };
}

/** Creates the handlers of all RPCs, and the routes to them. */
function compileProxyRoutes(
  upstreams: readonly OpenUpstream[],
  described: readonly Described[],
  options: ProxyOptions,
  report: FaultReporter,
): Routes {
  const { routes, rest = {}, jsonOptions } = options;
  const proxied = new Set(described.flatMap(({ services }) => services));
  const runs = new Map<DescMethod, UnaryRpc["run"]>();
  const register = (router: ConnectRouter): unknown => {
    const registered: unknown = routes?.(router);
    for (const [at, upstream] of upstreams.entries()) {
      for (const [method, run] of upstream.register(router, described[at]?.services ?? [])) runs.set(method, run);
    }
    // Returned, so that a promise is refused.
    return registered;
  };
  const rules = [...upstreams.flatMap((upstream) => upstream.options.rules ?? []), ...(rest.rules ?? [])];
  // The RPCs of one that could not be read yet are not known: a rule may be of these.
  const isIncomplete = described.some(({ services }) => services.length === 0);
  return compileNodeRoutes(
    {
      ...options,
      routes: register,
      rest: { ...rest, rules, ...(isIncomplete && { ignoreUnregistered: true }) },
      jsonOptions: { registry: typesOf(described), ...jsonOptions },
    },
    report,
    {
      createCodecs: (...rpc) => (proxied.has(rpc[0].parent) ? createServerCodecs(...rpc) : createMethodCodecs(...rpc)),
      // No test can tell: to validate all of them again would hold up calls for a while.
      isValidated: (service) => proxied.has(service),
      // No test can tell: without it, each call takes a promise more.
      runOf: (method) => runs.get(method),
    },
  );
}

function closeAll(upstreams: readonly OpenUpstream[]): Promise<unknown> {
  return Promise.all(upstreams.map((upstream) => upstream.close()));
}
