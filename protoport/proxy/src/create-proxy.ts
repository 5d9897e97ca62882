import type { DescService } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  createFaultReporter,
  assembleGateway,
  type CurrentNodeServer,
  gatewayOptionNames,
} from "@protoport/gateway/forward";
import { withCode } from "@protoport/gateway/errors";
import type { RestBinding, RestOptions } from "@protoport/gateway/rest";
import type { Gateway, GatewayOptions } from "@protoport/gateway";
import {
  arrayOf,
  type OptionNames,
  refuseUnknownOptions,
  required,
  withDefaultLimits,
} from "@protoport/gateway/options";
import { noBytes } from "@protoport/gateway/exchange";
import { compileProxy, routedMethodsOf } from "./compile-proxy.ts";
import {
  type DescriptorReload,
  guardObserver,
  localTypesOf,
  ProxiedUpstream,
  type ProxiedUpstreamOptions,
  proxiedUpstreamOptionNames,
  type ReloadReport,
  unknownServiceError,
  type UpstreamCallObserver,
  type VisibilityOptions,
} from "./forward/index.ts";
import type { OpenedOptions } from "./generation.ts";
import { Generations } from "./generations.ts";
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
export { parseServiceRules } from "./definitions/service-config.ts";
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
export interface ProxyOptions extends Omit<GatewayOptions, "routes"> {
  readonly upstreams: readonly ProxiedUpstreamOptions[];
  /** Registers services that this process serves itself, such as its health. */
  readonly routes?: GatewayOptions["routes"];
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
   * The REST options in use, which are the given options without the annotated routes that are not served.
   * `createOpenApi` accepts these options to describe {@link services}. A reload may replace the object.
   */
  readonly rest: RestOptions;
  /** The REST bindings in use, of which the document of `createOpenApi` describes each. */
  readonly bindings: readonly RestBinding[];
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
   * @param accept - called with the new services before they are served. If `accept` throws, rejects or takes 30 s, the
   * options are not valid
   */
  reconfigure(options: ProxyOptions, accept?: AcceptServices): Promise<void>;
}

/** Throws or rejects to refuse new options, which then are not applied. Gets the services that would be served. */
type AcceptServices = (
  next: Pick<ProxyGateway, "services" | "rest" | "bindings" | "descriptorReloads" | "descriptorSets">,
) => void | Promise<void>;

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
 * that names it in `services`, even while that upstream is unavailable. New descriptors are refused if an annotated REST
 * route overlaps a rule or a route of `routes`, of an earlier upstream or of descriptors from the operator. The upstream
 * keeps its last descriptors, and {@link ProxyGateway.descriptorReloads} has the reason. If an earlier upstream adds such
 * a route later, the later upstream serves no annotated REST routes. Until the proxy has reached all earlier upstreams,
 * an upstream with reflection serves no annotated REST routes and no MCP tools.
 *
 * Connects at the first call. `drain` and `close` also close the connections to upstreams.
 *
 * @returns a promise. The promise rejects with an Error that lists all problems in the descriptors and the HTTP rules,
 * with the error of a {@link DescriptorSource}, or with a TypeError for an invalid option
 */
export async function createProxy(given: ProxyOptions): Promise<ProxyGateway> {
  const generations = new Generations(openOptions);
  const { server, opened } = await generations.apply(given);
  const served: CurrentNodeServer = { server, handlerOptions: opened.options };
  const gateway = assembleGateway(served);
  generations.serveWith(served);
  return {
    handler: gateway.handler,
    checkContinue: gateway.checkContinue,
    matches: gateway.matches,
    fetch: gateway.fetch,
    get routes() {
      return gateway.routes;
    },
    listen: (listenOptions) => {
      generations.usesListen = true;
      return gateway.listen(listenOptions);
    },
    get load() {
      return gateway.load;
    },
    setSecureContext: (context) => gateway.setSecureContext(context),
    drain: (timeoutMs) => generations.stop(() => gateway.drain(timeoutMs)),
    close: () => generations.stop(() => gateway.close()),
    get services() {
      return generations.inUse.services;
    },
    get omitted() {
      return generations.inUse.omitted;
    },
    get hiddenRpcs() {
      return generations.inUse.compiled.hiddenRpcs;
    },
    get visibilityLabels() {
      return generations.inUse.compiled.visibilityLabels;
    },
    get descriptorSets() {
      return generations.inUse.descriptorSets;
    },
    get descriptorReloads() {
      return generations.inUse.descriptorReloads;
    },
    get rest() {
      return generations.inUse.compiled.rest;
    },
    get bindings() {
      return generations.inUse.compiled.routes.rest.bindings;
    },
    reload: () => generations.reload(),
    reconfigure: async (options, accept) => {
      await generations.apply(options, ({ services, compiled, descriptorReloads, descriptorSets }) => {
        const { rest, routes } = compiled;
        return accept?.({ services, rest, bindings: routes.rest.bindings, descriptorReloads, descriptorSets });
      });
    },
  };
}

/** Default limits for callers that differ from a gateway's defaults. */
const proxyLimits = {
  // Callers may send header fields as large as upstreams may send.
  headerBytes: upstreamLimits.headerBytes,
  // 64 MiB for 256 streams of 256 KiB each. Uploads that an upstream does not read must not stall other calls on the
  // connection.
  connectionWindowBytes: 64 * 1024 * 1024,
};

/** Opens the parts for options, without a read or a connection. Throws as {@link createProxy} rejects. */
function openOptions(given: ProxyOptions, noteUnknownPath: (path: string) => void): OpenedOptions {
  const options = { ...given, limits: withDefaultLimits(given.limits, proxyLimits) };
  refuseUnknownOptions(options, proxyOptionNames, "createProxy");
  refuseUntrustedRules(options);
  refuseSharedPatterns(options.upstreams);
  const report = createFaultReporter(options.onFault);
  const observe = guardObserver(options.onUpstreamCall, report);
  const call = { ...options, observe, binaryOptions: { ...options.binaryOptions, codegen: options.codegen ?? true } };
  const owners = new ServiceOwners(options.upstreams);
  const localMethods = routedMethodsOf(options.routes);
  const upstreams: ProxiedUpstream[] = [];
  try {
    for (const [at, upstream] of options.upstreams.entries())
      upstreams.push(new ProxiedUpstream(upstream, call, at, owners));
    const local = localTypesOf(options, localMethods);
    const compiler = { upstreams, owners, localMethods, local, options, report };
    return {
      options,
      report,
      upstreams,
      compile: function* (offers) {
        const all = offers.map(({ descriptors }) => descriptors);
        const { routes, ...compiled } = yield* compileProxy(compiler, all);
        // An unknown path may belong to an upstream whose descriptors have not been read yet.
        const isIncomplete = offers.some(({ set }) => set === noBytes);
        const onUnknownPath = (path: string): ConnectError | undefined => {
          noteUnknownPath(path);
          return isIncomplete ? unknownServiceError() : undefined;
        };
        return { ...compiled, routes: { ...routes, onUnknownPath } };
      },
    };
  } catch (error) {
    for (const upstream of upstreams) void upstream.close();
    throw error;
  }
}

/** @throws TypeError if rules from a server would be checked without a time limit */
function refuseUntrustedRules({ upstreams, validation }: ProxyOptions): void {
  const reflected = upstreams.findIndex(({ descriptors }) => descriptors === "reflection");
  if (validation === undefined || validation.isUntrusted === true || reflected < 0) return;
  const problem = `validation by rules of a server, upstreams[${reflected}], requires openValidation({ untrusted: true }), or descriptors from a file`;
  throw withCode(new TypeError(problem), "ERR_OPTIONS");
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
