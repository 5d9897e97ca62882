import type { DescService } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { createFaultReporter } from "@plantstore/serve";
import type { RestOptions } from "@plantstore/protocols";
import type { HttpEngine } from "@plantstore/http/node";
import {
  assembleGateway,
  createNodeServer,
  type CurrentNodeServer,
  type Gateway,
  gatewayOptionNames,
  type GatewayOptions,
  ignoredByListen,
} from "@plantstore/gateway/create-gateway";
import { createHttpEngine } from "@plantstore/http-engine";
import {
  arrayOf,
  type OptionNames,
  refuseIgnoredOptions,
  refuseUnknownOptions,
  required,
  withCode,
  withDefaultLimits,
} from "@plantstore/http";
import { compileProxy, methodsOf } from "./compile-proxy.ts";
import {
  type CompiledTable,
  type DescriptorReload,
  guardObserver,
  localTypesOf,
  ProxiedUpstream,
  type ProxiedUpstreamOptions,
  proxiedUpstreamOptionNames,
  knownDescriptorsOf,
  ProxyTable,
  type ReloadReport,
  unknownServiceError,
  type UpstreamCallObserver,
  type UpstreamDescriptors,
  type VisibilityOptions,
} from "./forward/index.ts";
import { findPatternProblems, ServiceOwners, upstreamLimits } from "./upstreams/index.ts";

export type {
  CallEnd,
  DescriptorReload,
  DescriptorSource,
  ForwardRules,
  MethodSettings,
  ProxiedUpstreamOptions,
  ReloadReport,
  RetryPolicy,
  UpstreamCall,
  UpstreamCallObserver,
  VisibilityOptions,
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

/**
 * Options for {@link createProxy}. A proxy has a gateway's options, with upstreams instead of handlers. By default,
 * `limits.headerBytes` is 64 KiB and `limits.connectionWindowBytes` 64 MiB. With `validation`, each request is decoded
 * and checked, and its original bytes are forwarded. Rules from reflection require
 * `openValidation({ untrusted: true })`, which limits the time for checking a message.
 */
export interface ProxyOptions extends Omit<GatewayOptions, "engine" | "routes"> {
  readonly upstreams: readonly ProxiedUpstreamOptions[];
  /** Registers services that this process serves itself, such as its health. */
  readonly routes?: GatewayOptions["routes"];
  /** The HTTP engine for `listen`. Defaults to `@plantstore/http-engine`. */
  readonly engine?: HttpEngine;
  /**
   * Selects the elements with a `google.api.visibility` rule that callers see, as in `createGateway`. Hidden elements
   * are also missing in {@link ProxyGateway.services}.
   */
  readonly visibility?: VisibilityOptions;
  /**
   * Called after each manual or automatic reload that changed the descriptors or conflicts, found problems, or ended
   * earlier problems.
   */
  readonly onReload?: (report: ReloadReport) => void;
  /**
   * Called when a call to an upstream starts, before its header fields are set. May return a function for metrics and
   * traces, which is called once when the call ends, with its error, duration, queue time and retries.
   */
  readonly onUpstreamCall?: UpstreamCallObserver;
}

const proxyOptionNames: OptionNames<ProxyOptions> = {
  ...gatewayOptionNames,
  routes: true,
  upstreams: arrayOf(proxiedUpstreamOptionNames, required),
  onReload: true,
  onUpstreamCall: true,
};

/** The services that would be served with new options. */
type NextServices = Pick<ProxyGateway, "services" | "descriptorReloads" | "descriptorSets">;

/** Throws or rejects to refuse new options, which then are not applied. */
type AcceptServices = (next: NextServices) => void | Promise<void>;

/** A gateway in front of gRPC services, which can listen or be mounted in another server. */
export interface ProxyGateway extends Gateway {
  /** The services in the current descriptors that are proxied. */
  readonly services: readonly DescService[];
  /** The services that are not proxied because the descriptors lack a required type, each with the reason. */
  readonly omitted: readonly string[];
  /** The services and RPCs that `visibility` hides, as `package.Service` and `package.Service.Method`. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** The labels of the rules in the current descriptors. Empty without `visibility`. */
  readonly visibilityLabels: ReadonlySet<string>;
  /** The descriptor sets in use, including comments, in upstream order. */
  readonly descriptorSets: readonly Uint8Array[];
  /**
   * The last reload of each upstream's descriptors, in upstream order. Calls to unknown paths fail with `Unavailable`
   * until all descriptors were read once.
   */
  readonly descriptorReloads: readonly DescriptorReload[];
  /**
   * The REST options in use, which are the given options without the routes that belong to another upstream.
   * `createOpenApi` accepts these options to describe {@link services}. A reload may replace the object.
   */
  readonly rest: RestOptions;
  /**
   * Reads the descriptors again, and validates them as at the start. Calls in flight keep the old descriptors. Never
   * rejects. An upstream whose descriptors cannot be read or are invalid keeps its previous descriptors. All other
   * upstreams use their new descriptors. Conflicts are resolved as at the start.
   */
  reload(): Promise<ReloadReport>;
  /**
   * Applies other options without closing the port. Calls in flight keep the old options. An upstream whose new
   * descriptors cannot be read or are invalid keeps the descriptors that were read from the same address. Rejects, with
   * the errors of {@link createProxy}, if the options are not valid, if they do not fit the kept descriptors, or if no
   * upstream has descriptors. After `listen` was called, also rejects with a TypeError for `contextValues` and
   * `fallback`. A rejected call changes nothing. Concurrent calls are applied in order. The engine,
   * `trustedProxies` and the connection limits stay as they were at the start.
   *
   * @param accept - called with the new services before they are served. If `accept` throws or rejects, the options are
   * not valid
   */
  reconfigure(options: ProxyOptions, accept?: AcceptServices): Promise<void>;
}

/**
 * Creates a gateway in front of gRPC services. Callers use gRPC, gRPC-Web, Connect or REST. Upstreams use gRPC over
 * HTTP/2.
 *
 * Binary messages are forwarded as bytes. Only JSON is converted, with the descriptors. Uncompressed gRPC messages
 * above 64 KiB are forwarded as they arrive, without compression, unless the options have `validation` or
 * interceptors. A message or a stream is decoded when an interceptor reads it. The remaining time of the caller's
 * deadline is forwarded, and a caller that disconnects cancels the upstream's call. Calls that may have been processed
 * are never retried.
 *
 * With several upstreams, the proxy starts even if some upstreams cannot be reached for `"reflection"`, or send invalid
 * descriptors. The proxy retries these upstreams, and serves them once their descriptors are read.
 *
 * An upstream cannot take over another upstream's calls by offering the same names. A service belongs to the upstream
 * that names it in `services`, even while that upstream is unavailable. An annotated REST route is omitted if it
 * overlaps a route from an earlier upstream, a rule or `routes`. {@link ProxyGateway.descriptorReloads} lists the
 * omitted routes. Until the proxy has reached all earlier upstreams, an upstream with reflection serves no annotated
 * REST routes.
 *
 * Connects at the first call. `drain` and `close` also close the connections to upstreams.
 *
 * @returns a promise. The promise rejects with an Error that lists all problems in the descriptors and the HTTP rules,
 * with the error of a {@link DescriptorSource}, or with a TypeError for an invalid option
 */
export async function createProxy(given: ProxyOptions): Promise<ProxyGateway> {
  return openProxy(await openServing(given), given);
}

/** Default limits for callers that differ from a gateway's defaults. */
const proxyLimits = {
  // Callers may send header fields as large as upstreams may send.
  headerBytes: upstreamLimits.headerBytes,
  // 64 MiB for 256 streams of 256 KiB each. Uploads that an upstream does not read must not stall other calls on the
  // connection.
  connectionWindowBytes: 64 * 1024 * 1024,
};

/** Milliseconds for which replaced upstreams serve the calls in flight. 20 s, like the command's drain timeout. */
const replacedDrainMs = 20_000;

/** The objects that a proxy opens from its options. `reconfigure` replaces the objects. */
interface Serving {
  readonly table: ProxyTable;
  readonly served: CurrentNodeServer;
  readonly upstreams: readonly ProxiedUpstream[];
  readonly watches: readonly (() => void)[];
}

/** The state of a proxy that a running `reconfigure` reads and writes. */
interface ProxyState {
  isStopped: boolean;
  /** Whether `listen` was called. */
  usesListen: boolean;
  /** The objects from the last `reconfigure` until they are in use. Their descriptors may not have been read yet. */
  opening?: Omit<Serving, "served"> | undefined;
}

/**
 * Reads the descriptors of all upstreams in the options, and compiles the routes. Rejects as {@link createProxy} does.
 *
 * @param previous - the previous table, whose descriptors are used for upstreams that cannot be reached
 * @param state - gets the objects before the descriptors are read, so that the caller can close the objects
 */
async function openServing(given: ProxyOptions, previous?: ProxyTable, state?: ProxyState): Promise<Serving> {
  const options = { ...given, limits: withDefaultLimits(given.limits, proxyLimits) };
  refuseUnknownOptions(options, proxyOptionNames, "createProxy");
  const reflected = options.upstreams.findIndex(({ descriptors }) => descriptors === "reflection");
  if (options.validation !== undefined && options.validation.isUntrusted !== true && reflected >= 0) {
    const problem = `validation by rules of a server, upstreams[${reflected}], requires openValidation({ untrusted: true }), or descriptors from a file`;
    throw withCode(new TypeError(problem), "ERR_OPTIONS");
  }
  const report = createFaultReporter(options.onFault);
  const observe = guardObserver(options.onUpstreamCall, report);
  const call = { ...options, observe, binaryOptions: { ...options.binaryOptions, codegen: options.codegen ?? true } };
  refuseSharedPatterns(options.upstreams);
  const owners = new ServiceOwners(options.upstreams);
  const localMethods = methodsOf(options.routes);
  const upstreams: ProxiedUpstream[] = [];
  const watches: (() => void)[] = [];
  try {
    for (const [at, upstream] of options.upstreams.entries())
      upstreams.push(new ProxiedUpstream(upstream, call, at, owners));
    const onUnknownPath = (path: string): ConnectError | undefined => {
      table.noteUnknownPath(path);
      return table.isIncomplete ? unknownServiceError() : undefined;
    };
    const local = localTypesOf(options, localMethods);
    const compiler = { upstreams, owners, localMethods, local, options, report };
    const compile = function* (descriptors: readonly UpstreamDescriptors[]): Generator<void, CompiledTable> {
      const { routes, ...compiled } = yield* compileProxy(compiler, descriptors);
      return { ...compiled, routes: { ...routes, onUnknownPath } };
    };
    const table = new ProxyTable(upstreams, compile, report, options);
    const opened = { table, upstreams, watches };
    if (state !== undefined) state.opening = opened;
    try {
      await table.load(knownDescriptorsOf(upstreams, previous));
      const served = { server: createNodeServer(options, table.inUse.routes, report), handlerOptions: options };
      table.current = served;
      for (const upstream of upstreams) watches.push(upstream.watchDescriptors(() => void table.reload()));
      return { ...opened, served };
    } catch (error) {
      // Aborts reads in progress, because their result is not needed.
      stopReading(opened);
      throw error;
    }
  } catch (error) {
    await closeAll(upstreams);
    throw error;
  }
}

function stopReading({ table, watches }: Pick<Serving, "table" | "watches">): void {
  table.close();
  for (const stopWatch of watches) stopWatch();
}

/** Stops reading descriptors. The upstreams still serve the calls that hold the old routes. */
function replace(old: Serving): void {
  stopReading(old);
  for (const upstream of old.upstreams) upstream.drain(replacedDrainMs);
}

function openProxy(first: Serving, options: ProxyOptions): ProxyGateway {
  let current = first;
  const state: ProxyState = { isStopped: false, usesListen: false };
  const { served } = first;
  const gateway = assembleGateway(served, options.engine ?? createHttpEngine());
  const stop = async (stopGateway: () => Promise<void>): Promise<void> => {
    state.isStopped = true;
    await Promise.all([state.opening && closeServing(state.opening), closeServing(current, stopGateway)]);
  };
  const reconfigure = queueCalls(async (next: ProxyOptions, accept?: AcceptServices) => {
    const opened = await openNext(next, current.table, state, accept);
    state.opening = undefined;
    replace(current);
    current = serveWith(served, opened);
  });
  return {
    handler: gateway.handler,
    checkContinue: gateway.checkContinue,
    fetch: gateway.fetch,
    get routes() {
      return gateway.routes;
    },
    listen: (listenOptions) => {
      state.usesListen = true;
      return gateway.listen(listenOptions);
    },
    get load() {
      return gateway.load;
    },
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: (timeoutMs) => stop(() => gateway.drain(timeoutMs)),
    close: () => stop(() => gateway.close()),
    get services() {
      return current.table.services;
    },
    get omitted() {
      return current.table.omitted;
    },
    get hiddenRpcs() {
      return current.table.inUse.hiddenRpcs;
    },
    get visibilityLabels() {
      return current.table.inUse.visibilityLabels;
    },
    get descriptorSets() {
      return current.table.descriptorSets;
    },
    get descriptorReloads() {
      return current.table.reloads;
    },
    get rest() {
      return current.table.inUse.rest;
    },
    reload: () => current.table.reload(),
    reconfigure,
  };
}

async function closeServing(serving: Omit<Serving, "served">, stopGateway?: () => Promise<void>): Promise<void> {
  stopReading(serving);
  await stopGateway?.();
  await closeAll(serving.upstreams);
}

/** Serves new requests with the new objects. The trusted proxies stay, because the listener uses them too. */
function serveWith(served: CurrentNodeServer, opened: Serving): Serving {
  const { trustedProxies } = served.server;
  served.server = { ...opened.served.server, trustedProxies };
  served.handlerOptions = opened.served.handlerOptions;
  opened.table.current = served;
  return { ...opened, served };
}

/** Returns a function that calls `apply` for one call after another. A rejected call does not affect other calls. */
function queueCalls<Given extends unknown[]>(apply: (...given: Given) => Promise<void>): typeof apply {
  let last: Promise<unknown> = Promise.resolve();
  return (...given) => {
    const applied = last.then(() => apply(...given));
    last = applied.catch(() => undefined);
    return applied;
  };
}

/** Opens the objects for new options. Closes the objects if the proxy is closed or the options are not accepted. */
async function openNext(
  next: ProxyOptions,
  previous: ProxyTable,
  state: ProxyState,
  accept: AcceptServices | undefined,
): Promise<Serving> {
  let opened: Serving | undefined;
  try {
    if (state.isStopped) throw closedError();
    opened = await openServing(next, previous, state);
    const { services, reloads, descriptorSets } = opened.table;
    await accept?.({ services, descriptorReloads: reloads, descriptorSets });
    if (state.usesListen) refuseIgnoredOptions(next, ignoredByListen, "listen()");
    if (state.isStopped) throw closedError();
    return opened;
  } catch (error) {
    await (opened && closeServing(opened));
    throw state.isStopped ? closedError() : error;
  }
}

function closedError(): Error {
  return new Error("the proxy is closed");
}

/** @throws TypeError if service patterns are missing or duplicate */
function refuseSharedPatterns(upstreams: readonly ProxiedUpstreamOptions[]): void {
  const problems = findPatternProblems(upstreams).map(({ at, other, pattern }) =>
    pattern === undefined
      ? `upstreams[${at}].services is required because upstreams[${other}] uses reflection, too; add services: ["package.*"]`
      : `upstreams[${at}].services must not contain ${JSON.stringify(pattern)}, which is a pattern of upstreams[${other}]`,
  );
  if (problems.length > 0) throw withCode(new TypeError(problems.join("\n")), "ERR_OPTIONS");
}

function closeAll(upstreams: readonly ProxiedUpstream[]): Promise<unknown> {
  return Promise.all(upstreams.map((upstream) => upstream.close()));
}
