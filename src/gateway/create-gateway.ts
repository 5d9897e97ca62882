import type { ConnectError, ConnectRouter, ConnectRouterOptions, ContextValues } from "@connectrpc/connect";
import { type IncomingMessage, METHODS } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { SecureContextOptions } from "node:tls";
import type { ReadJsonOptions } from "./json/index.ts";
import {
  type Admit,
  type AdmitRequest,
  type AnsweredRequest,
  type CorsOptions,
  createCors,
  createDispatch,
  createMatchTable,
  createProcedures,
  type Endpoint,
  refuse,
} from "./calls/index.ts";
import { type GatewayLoad, Listener, type ListenOptions } from "./carriers/index.ts";
import {
  createFaultReporter,
  defaultLimits,
  defaultReadMaxBytes,
  type Exchange,
  guardCallback,
  type HttpProblem,
  type Limits,
  type OnFault,
} from "./exchange/index.ts";
import { brotli, gzip, zstd } from "./protocols/index.ts";
import { createErrorWriter, createRestRouter, type ErrorRecordPolicy, type RestRouterOptions } from "./rest/index.ts";
import { createTrustedProxies, type TrustedProxiesOptions } from "./proxies/index.ts";
import { createNodeHandler, type NodeHandler } from "./node-handler.ts";

/** Options of {@link createGateway}: those of `connectNodeAdapter`, and more. */
export interface GatewayOptions extends ConnectRouterOptions {
  /** Registers the services, as for `connectNodeAdapter`. */
  readonly routes: (router: ConnectRouter) => void;
  /** Serves everything below this path, for example `/api`. */
  readonly requestPathPrefix?: string;
  /** Handles requests that match nothing, without calling `admit`; used by {@link Gateway.handler} only. */
  readonly fallback?: NodeHandler;
  /** Returns the initial context values; used by {@link Gateway.handler} only, which has a node request to pass. */
  readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
  /** Decides on each request by its header, before a byte of its body is read. */
  readonly admit?: Admit;
  /** How REST and JSON differ from the standard mapping. */
  readonly rest?: RestOptions;
  /** Plain HTTP resources beside the RPCs, such as probes. */
  readonly endpoints?: readonly Endpoint[];
  /** Lets pages of other origins call over REST, Connect and gRPC-Web. Off by default. */
  readonly cors?: CorsOptions;
  readonly limits?: Partial<Limits>;
  /** The proxies whose word about a client is taken, in header fields and by the PROXY protocol. Default none. */
  readonly trustedProxies?: TrustedProxiesOptions;
  /**
   * Called with every request before `admit`, for example to set context values. What it throws goes to {@link onFault},
   * once for each cause.
   */
  readonly onRequest?: (request: AdmitRequest) => void;
  /** Called before a request is answered with an error. What it throws goes to {@link onFault}, once for each cause. */
  readonly onError?: (request: AdmitRequest, error: ConnectError) => void;
  /** Called after every answered request. What it throws goes to {@link onFault}, once for each cause. */
  readonly onAnswer?: (answer: AnsweredRequest) => void;
  /**
   * Called with faults that no answer reveals: an answer that could not be written, or a callback that failed. Default:
   * a process warning.
   */
  readonly onFault?: OnFault;
}

/** How REST and JSON differ from the standard mapping. */
export interface RestOptions extends Omit<RestRouterOptions, "readJson" | "writeJson"> {
  /** What an error looks like. Default: google.rpc.Status as JSON under the status of its code. */
  readonly errorRecord?: ErrorRecordPolicy;
  /**
   * How JSON is read, by the JSON codec of the RPC protocols and on REST, where unknown fields have a rule of their
   * own.
   */
  readonly json?: ReadJsonOptions;
}

/** A gateway, ready to listen by itself or to be mounted in another server. */
export interface Gateway {
  /** Serves one request of a node, Express or Fastify server; replaces the handler of `connectNodeAdapter`. */
  readonly handler: NodeHandler;
  /** Listens on one port for HTTP/1.1 and HTTP/2, once. Rejects with the errors of `net.Server`, such as EADDRINUSE. */
  listen(options?: ListenOptions): Promise<{ readonly address: string; readonly port: number }>;
  /** What its port carries at the moment. Counted when it is read; zeros before {@link listen}. */
  readonly load: GatewayLoad;
  /** Uses a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
  /** Stops accepting, lets requests in flight finish, and cuts off what is left after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void>;
  /** Closes at once, and cuts off calls in flight. */
  close(): Promise<void>;
}

/**
 * Creates a gateway from Connect routes.
 *
 * @throws Error listing every problem of the HTTP rules, and of `requestPathPrefix`, at once; TypeError naming an address
 * of `trustedProxies` that is none
 */
export function createGateway(options: GatewayOptions): Gateway {
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const { rest = {}, requestPathPrefix = "", endpoints = [] } = options;
  const trustedProxies = options.trustedProxies && createTrustedProxies(options.trustedProxies);
  const report = createFaultReporter(options.onFault);
  const onIgnored = guardCallback("rest.onIgnored", rest.onIgnored, report);
  const { procedures, registry } = createProcedures(
    options.routes,
    { ...options, ...connectDefaults(options) },
    ({ jsonOptions }) => ({ ...jsonRulesOf(jsonOptions), ...rest.json }),
  );
  const jsonOptions = { registry, ...options.jsonOptions };
  const writeErrorRecord = createErrorWriter(rest.errorRecord, registry);
  const methods = procedures.map((procedure) => procedure.handler.method);
  const router = createRestRouter(
    methods,
    {
      ...rest,
      readJson: { ...jsonRulesOf(jsonOptions), ...rest.json },
      writeJson: jsonOptions,
      ...(onIgnored && { onIgnored }),
    },
    {
      reservedPaths: endpoints.filter(({ atRoot }) => atRoot !== true).map(({ path }) => path),
      requestPathPrefix,
      parsedMethods,
    },
  );
  const httpMethods = router.bindings.map(({ pattern }) => pattern.httpMethod);
  const table = createMatchTable(procedures, endpoints, router, requestPathPrefix);
  const serve = createDispatch({
    table,
    admit: options.admit,
    writeErrorRecord,
    cors: options.cors === undefined ? undefined : createCors(options.cors, httpMethods),
    onRequest: guardCallback("onRequest", options.onRequest, report),
    onError: guardCallback("onError", options.onError, report),
    onAnswer: guardCallback("onAnswer", options.onAnswer, report),
    report,
    defaultTimeoutMs: limits.defaultTimeoutMs,
    trustedProxies,
  });
  const refuseProblem = (exchange: Exchange, { httpStatus, error }: HttpProblem): void => {
    refuse(
      exchange,
      { protocol: "rest", httpStatus, error, procedure: undefined, fields: [] },
      writeErrorRecord,
      report,
    );
  };
  const listener = new Listener({
    limits,
    trustedProxies,
    serve,
    refuse: refuseProblem,
    report,
    writeProblem: ({ error, httpStatus }) => writeErrorRecord(error, { httpStatus, procedure: undefined }),
  });
  return {
    handler: createNodeHandler({ table, limits, serve, refuse: refuseProblem, options }),
    listen: (listenOptions = {}) => listener.listen(listenOptions),
    get load() {
      return listener.load;
    },
    setSecureContext: (context) => listener.setSecureContext(context),
    drain: (timeoutMs) => listener.drain(timeoutMs),
    close: () => listener.drain(0),
  };
}

/**
 * Creates a gateway and returns its handler, under the name that `@connectrpc/connect-node` uses: a server built on that
 * package changes its import and nothing else.
 *
 * @throws Error listing every problem of the HTTP rules at once
 */
export function connectNodeAdapter(options: GatewayOptions): NodeHandler {
  return createGateway(options).handler;
}

// node never turns CONNECT into a request (RFC 9110 §9.3.6).
const parsedMethods: ReadonlySet<string> = new Set(METHODS.filter((name) => name !== "CONNECT"));

/** Connect ignores unknown fields by default, so the JSON codec of the RPC protocols does too. */
function jsonRulesOf(options: ConnectRouterOptions["jsonOptions"]): ReadJsonOptions {
  const unknownFields = options?.ignoreUnknownFields === false ? "reject" : "ignore";
  return options?.registry === undefined ? { unknownFields } : { unknownFields, registry: options.registry };
}

function connectDefaults(options: GatewayOptions): Partial<ConnectRouterOptions> {
  return {
    acceptCompression: options.acceptCompression ?? [gzip, brotli, zstd],
    readMaxBytes: options.readMaxBytes ?? defaultReadMaxBytes,
  };
}
