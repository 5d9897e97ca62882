import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { createRequire } from "node:module";
import type { SecureContextOptions } from "node:tls";
import type { ContextValues } from "@connectrpc/connect";
import { type BoundAddress, type GatewayLoad, Listener, type ListenOptions } from "./engine/index.ts";
import { createFetchHandler, type FetchGateway } from "./fetch/index.ts";
import { type OptionNames, refuseIgnoredOptions, refuseUnknownOptions, runSteps } from "./http/index.ts";
import {
  continueWhenRead,
  createTrustedProxies,
  trustedProxiesNames,
  type TrustedProxiesOptions,
} from "./http/node-entry.ts";
import {
  createNodeHandler,
  type CurrentNodeServer,
  matchesRoute,
  type NodeHandler,
  type NodeServerResponse,
} from "./node-handler.ts";
import { describeUnusedLabels } from "./protobuf/index.ts";
import { brotli, gzip, zstd } from "./protocols/compression/index.ts";
import {
  compileRoutesInSteps,
  createFaultReporter,
  createServer,
  type FaultReporter,
  type GatewayRoute,
  listRoutes,
  type Platform,
  refuseProblem,
  type Routes,
  serve,
  type Server,
  servingOptionNames,
  type ServingOptions,
} from "./serve/index.ts";

export type { CurrentNodeServer } from "./node-handler.ts";

/** Options for {@link createGateway}. */
export interface GatewayOptions extends ServingOptions {
  /**
   * Handles requests that match no route, without a call to `admit`. Only {@link Gateway.handler} uses `fallback`.
   * Declared as a method, `fallback` also accepts a function for only node:http or only node:http2, such as an Express
   * application.
   */
  fallback?(this: void, request: IncomingMessage | Http2ServerRequest, response: NodeServerResponse): void;
  /**
   * Returns a call's initial context values, in a new object for each call, because `admit` and interceptors set the
   * caller's values in the object. Only {@link Gateway.handler} uses `contextValues`, because only the handler has
   * a request from node. Thrown errors are handled like errors from `admit`. After an error, `onRequest` is not called,
   * because the context values are missing.
   */
  readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
  /**
   * Returns a client's IP address, for servers that know the proxies in front of them. `undefined` means the
   * connection's address. Only {@link Gateway.handler} uses `clientAddress`, and only without `trustedProxies`.
   */
  readonly clientAddress?: (request: IncomingMessage | Http2ServerRequest) => string | undefined;
  /** The proxies that are trusted to report clients, by header fields or the PROXY protocol. Default: no proxies. */
  readonly trustedProxies?: TrustedProxiesOptions;
}

/** The names of all {@link GatewayOptions}. */
export const gatewayOptionNames: OptionNames<GatewayOptions> = {
  ...servingOptionNames,
  fallback: true,
  contextValues: true,
  clientAddress: true,
  trustedProxies: trustedProxiesNames,
};

/** A gateway on node, which can listen by itself or be mounted in another server. */
export interface Gateway extends FetchGateway {
  /** Serves one request from a node, Express or Fastify server. Replaces the `connectNodeAdapter` handler. */
  readonly handler: NodeHandler;
  /**
   * The listener for the event `checkContinue` of node's servers. Serves a request as {@link handler} does, and sends
   * 100 (Continue) once the request is matched and admitted (RFC 9110 §10.1.1). Without a listener, node:http sends 100
   * immediately. If a request is passed on to `next` or `fallback`, the called function must call
   * `response.writeContinue()`.
   */
  readonly checkContinue: NodeHandler;
  /** Returns whether {@link handler} serves a request, instead of calling `next` or `fallback`. */
  matches(this: void, request: IncomingMessage | Http2ServerRequest): boolean;
  /**
   * The paths that the gateway serves, for frameworks that register routes. The routes from `createGateway` never
   * change. A proxy's routes change with its services, so each read returns the current routes.
   */
  readonly routes: readonly GatewayRoute[];
  /**
   * Listens for HTTP/1.1 and HTTP/2 on one port or Unix socket. May be called once. Rejects with the errors of
   * `net.Server`, such as EADDRINUSE. Also rejects if the gateway is drained before it listens, and with a TypeError
   * for the options `clientAddress`, `contextValues` and `fallback`, which only {@link handler} uses.
   */
  listen(options?: ListenOptions): Promise<BoundAddress>;
  /** The current load on the port, counted at each read. All numbers are 0 before {@link listen} is called. */
  readonly load: GatewayLoad;
  /** Sets a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
  /**
   * Stops accepting connections, and waits for requests in flight. After `timeoutMs`, closes the connections of the
   * remaining requests, which get no response. To end calls with a status, abort `shutdownSignal` before draining.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes the gateway immediately. Calls in flight are aborted without a response. */
  close(): Promise<void>;
}

/**
 * Creates a gateway from Connect routes.
 *
 * @throws Error that lists all problems in the HTTP rules and `requestPathPrefix`
 * @throws TypeError for unknown options, and for a `trustedProxies` entry that is not an address
 */
export function createGateway(options: GatewayOptions): Gateway {
  refuseUnknownOptions(options, gatewayOptionNames, "createGateway");
  const report = createFaultReporter(options.onFault);
  const routes = runSteps(compileNodeRoutes(options, report));
  for (const line of describeUnusedLabels(options.visibility, routes.visibilityLabels)) process.emitWarning(line);
  return assembleGateway({ server: createNodeServer(options, routes, report), handlerOptions: options });
}

/** Compiles the {@link Routes} for a gateway on node, in several steps per RPC. Throws the `createGateway` errors. */
export function compileNodeRoutes(
  options: GatewayOptions,
  report: FaultReporter,
  rpcs?: Pick<Platform, "isValidated" | "definitions">,
): Generator<void, Routes> {
  const platform = { compressions: [gzip, brotli, zstd], parsedMethods, commonJsPrototype };
  return compileRoutesInSteps(options, { ...platform, ...rpcs }, report);
}

/** Creates the {@link Server} for a gateway on node. */
export function createNodeServer(
  options: Omit<GatewayOptions, "routes">,
  routes: Routes,
  report: FaultReporter,
): Server {
  const trustedProxies = options.trustedProxies && createTrustedProxies(options.trustedProxies);
  return createServer(options, routes, report, trustedProxies);
}

/** The options that only {@link Gateway.handler} uses, and hints on what to use instead. */
export const ignoredByListen = {
  clientAddress: "set trustedProxies, or pass gateway.handler to a server of node",
  contextValues: "set the values in admit, or pass gateway.handler to a server of node",
  fallback: "add endpoints, or pass gateway.handler to a server of node",
};

/** Creates the handlers and the listener that pass requests on node to the current {@link Server}. */
export function assembleGateway(current: CurrentNodeServer): Gateway {
  const { limits, trustedProxies } = current.server;
  const listener = new Listener({
    limits,
    report: (...fault) => current.server.report(...fault),
    trustedProxies,
    serve: (exchange) => serve(current.server, exchange),
    refuse: (exchange, problem) => refuseProblem(current.server, exchange, problem),
  });
  const handler = createNodeHandler(current);
  return {
    handler,
    checkContinue: (request, response, next) => {
      continueWhenRead(response);
      handler(request, response, next);
    },
    matches: (request) => matchesRoute(current.server, request),
    fetch: createFetchHandler(current),
    get routes() {
      return listRoutes(current.server.routes);
    },
    listen: async (listenOptions = {}) => {
      refuseIgnoredOptions(current.handlerOptions, ignoredByListen, "listen()");
      return await listener.listen(listenOptions);
    },
    get load() {
      return listener.load;
    },
    setSecureContext: (context) => listener.setSecureContext(context),
    drain: (timeoutMs) => listener.drain(timeoutMs),
    // equivalent mutant: one millisecond more or less makes no difference.
    close: () => listener.drain(0),
  };
}

/**
 * Creates a gateway and returns its handler. The function has the same name as in `@connectrpc/connect-node`. A server
 * that uses connect-node need only change its import.
 *
 * @throws Error that lists all problems in the HTTP rules
 */
export function connectNodeAdapter(options: GatewayOptions): NodeHandler {
  return createGateway(options).handler;
}

const commonMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * The HTTP methods that reach a gateway in any server. Node's list of methods takes 10 ms to load, so the list is
 * loaded only for rare methods.
 */
const parsedMethods: Pick<ReadonlySet<string>, "has"> = {
  // Node never emits a request for CONNECT (RFC 9110 §9.3.6).
  has: (name) =>
    commonMethods.has(name) || (name !== "CONNECT" && process.getBuiltinModule("node:http").METHODS.includes(name)),
};

/** Returns the prototype of descriptors in a CommonJS program, which loads the CommonJS build of protobuf-es. */
function commonJsPrototype(): unknown {
  // A bundle in CommonJS has no `import.meta`.
  const require = createRequire(import.meta.url ?? __filename);
  const protobuf: typeof import("@bufbuild/protobuf") = require("@bufbuild/protobuf");
  const wellKnown: typeof import("@bufbuild/protobuf/wkt") = require("@bufbuild/protobuf/wkt");
  return Object.getPrototypeOf(protobuf.create(wellKnown.FileDescriptorProtoSchema));
}
