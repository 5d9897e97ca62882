import type { ConnectRouter, ConnectRouterOptions, ContextValues } from "@connectrpc/connect";
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { SecureContextOptions } from "node:tls";
import type { ReadJsonOptions } from "../json/index.ts";
import {
  type CorsOptions,
  createCors,
  createRestRouter,
  type ErrorRecordPolicy,
  type RestRouterOptions,
  TextIndex,
} from "../rest/index.ts";
import type { Admit } from "./admit.ts";
import { brotli, gzip, zstd } from "./compression.ts";
import type { Endpoint } from "./endpoint.ts";
import { createEngineServer } from "./engine-server.ts";
import { createErrorWriter } from "./error-writer.ts";
import type { Exchange } from "./exchange.ts";
import { createHttp1Server } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";
import { defaultLimits, defaultReadMaxBytes, type Limits } from "./limits.ts";
import { createListener, type ListenOptions } from "./listener.ts";
import { type MatchTable, matchRequest } from "./match.ts";
import { createNodeHandler, type NodeHandler } from "./node-handler.ts";
import { createProcedures } from "./create-procedures.ts";
import { refuse } from "./refuse.ts";
import type { HttpProblem } from "./request-line.ts";
import { type Answer, createServe } from "./serve.ts";

/** Options of {@link createGateway}: those of `connectNodeAdapter`, and the gateway's own. */
export interface GatewayOptions extends ConnectRouterOptions {
  /** Registers the services, as for `connectNodeAdapter`. */
  readonly routes: (router: ConnectRouter) => void;
  /** Serves everything under this path, such as `/api`. */
  readonly requestPathPrefix?: string;
  /** Takes requests that match nothing, by {@link Gateway.handler} only; they are not asked of `admit`. */
  readonly fallback?: NodeHandler;
  /** Context values to start from, by {@link Gateway.handler} only, which has a node request to give. */
  readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
  /** Decides on each request by its header, before a byte of its body is read. */
  readonly admit?: Admit;
  /** How REST and JSON differ from the standard mapping. */
  readonly rest?: RestOptions;
  /** Plain HTTP resources beside the RPCs, such as probes. */
  readonly endpoints?: readonly Endpoint[];
  /** Lets pages of other origins call, on REST, Connect and gRPC-Web. Off by default. */
  readonly cors?: CorsOptions;
  readonly limits?: Partial<Limits>;
  /** Told of every answered request. Must not throw. */
  readonly onAnswer?: (answer: Answer) => void;
}

/** How REST and JSON differ from the standard mapping. */
export interface RestOptions extends Omit<RestRouterOptions, "readJson" | "writeJson" | "reservedPaths"> {
  /** What an error looks like. Default: google.rpc.Status as JSON under the status of its code. */
  readonly errorRecord?: ErrorRecordPolicy;
  /** How JSON is read: by the JSON codec of the RPC protocols and, but for unknown fields, on REST. */
  readonly json?: ReadJsonOptions;
}

/** A gateway, ready to listen by itself or to be mounted in a server that does. */
export interface Gateway {
  /** Serves one request of a node, Express or Fastify server; takes the place of `connectNodeAdapter`. */
  readonly handler: NodeHandler;
  /** Listens on one port for HTTP/1.1 and HTTP/2, once. Rejects as `net.Server` errs, such as with EADDRINUSE. */
  listen(options?: ListenOptions): Promise<{ readonly address: string; readonly port: number }>;
  /** Takes a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
  /** Stops accepting, finishes what was taken, and cuts what is left after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void>;
  /** Closes at once, calls in flight and all. */
  close(): Promise<void>;
}

/**
 * Makes a gateway of Connect routes.
 *
 * @throws Error listing every problem of the HTTP rules at once
 */
export function createGateway(options: GatewayOptions): Gateway {
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const { rest = {}, requestPathPrefix = "", endpoints = [] } = options;
  const writeErrorRecord = createErrorWriter(rest.errorRecord, options.jsonOptions?.registry);
  const procedures = createProcedures(
    options.routes,
    { ...options, ...connectDefaults(options) },
    ({ jsonOptions }) => ({ ...jsonRulesOf(jsonOptions), ...rest.json }),
  );
  const table: MatchTable = {
    procedures: new TextIndex(procedures.map((procedure) => [procedure.name, procedure])),
    endpoints: new TextIndex(
      endpoints.map((endpoint) => [`${endpoint.atRoot === true ? "" : requestPathPrefix}${endpoint.path}`, endpoint]),
    ),
    rest: createRestRouter(
      procedures.map((procedure) => procedure.handler.method),
      {
        ...rest,
        readJson: { ...jsonRulesOf(options.jsonOptions), ...rest.json },
        writeJson: options.jsonOptions ?? {},
        reservedPaths: endpoints.filter(({ atRoot }) => atRoot !== true).map(({ path }) => path),
      },
    ),
    prefix: requestPathPrefix,
  };
  const serve = createServe({
    admit: options.admit,
    writeErrorRecord,
    cors: options.cors === undefined ? undefined : createCors(options.cors),
    onAnswer: options.onAnswer,
    defaultTimeoutMs: limits.defaultTimeoutMs,
  });
  const serveExchange = (exchange: Exchange): void => {
    serve(exchange, matchRequest(table, exchange));
  };
  const refuseProblem = (exchange: Exchange, { httpStatus, error }: HttpProblem): void => {
    refuse(exchange, { protocol: "rest", httpStatus, error, procedure: undefined, fields: [] }, writeErrorRecord);
  };
  const http1 = createHttp1Server({
    limits,
    serve: serveExchange,
    refuse: refuseProblem,
    writeErrorRecord,
    draining: () => listener.draining,
  });
  const http2 = () => createHttp2Server({ limits, serve: serveExchange, refuse: refuseProblem });
  const engine = createEngineServer({ limits, serve: serveExchange, refuse: refuseProblem });
  const listener = createListener({ limits, http1, http2, engine });
  return {
    handler: createNodeHandler({ table, limits, serve, refuse: refuseProblem, options }),
    listen: (listenOptions = {}) => listener.listen(listenOptions),
    setSecureContext: (context) => listener.setSecureContext(context),
    drain: (timeoutMs) => listener.drain(timeoutMs),
    close: () => listener.drain(0),
  };
}

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

export type { NodeHandler } from "./node-handler.ts";
