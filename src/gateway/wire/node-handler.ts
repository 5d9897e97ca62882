import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Exchange } from "./exchange.ts";
import { type ConnectionPolicy, Http1Exchange } from "./http1-exchange.ts";
import { Http2Exchange } from "./http2-exchange.ts";
import { readField } from "./header-fields.ts";
import type { Limits } from "./limits.ts";
import { type MatchTable, matchRequest } from "./match.ts";
import { type HttpProblem, readRequestTarget } from "./request-line.ts";
import type { Serve } from "./serve.ts";

/**
 * A listener for the requests of node's HTTP servers, which Express and Fastify (`req.raw`, `reply.raw`)
 * can call too.
 *
 * @param next - called instead of answering when nothing matches, or with an Error when the server has
 * already read the body; without it that is answered as `Internal`
 */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: (error?: Error) => void,
) => void;

/** What {@link createNodeHandler} stands on. */
export interface NodeHandlerOptions {
  readonly table: MatchTable;
  readonly limits: Limits;
  readonly serve: Serve;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
  readonly options: {
    readonly fallback?: NodeHandler;
    readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
  };
}

/** Makes the handler that serves a gateway's RPCs within somebody else's server. */
export function createNodeHandler({ table, limits, serve, refuse, options }: NodeHandlerOptions): NodeHandler {
  return (request, response, next) => {
    const sent = request.url ?? "";
    const judged = readRequestTarget(sent, authorityOf(request), request.httpVersion !== "1.0", limits);
    const target = typeof judged === "string" ? judged : sent;
    const match = matchRequest(table, { httpMethod: request.method ?? "", target, fields: request.rawHeaders });
    // What is not ours is not ours to judge, and is passed on untouched.
    if (match.kind === "refused" && match.unknown) {
      if (next !== undefined) return next();
      if (options.fallback !== undefined) return options.fallback(request, response);
    }
    const exchange = toExchange(request, response, target);
    if (typeof judged !== "string") return refuse(exchange, judged);
    // A body parser has left nothing to read, and waiting for it would never end.
    if (!exchange.bodyEmpty && request.readableDidRead) {
      if (next !== undefined) return next(new Error(bodyWasRead));
      return refuse(exchange, { httpStatus: 500, error: new ConnectError(bodyWasRead, Code.Internal) });
    }
    serve(exchange, match, options.contextValues?.(request));
  };
}

const bodyWasRead = "the request body was read before the gateway got it: mount the gateway before any body parser";

function toExchange(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  target: string,
): Exchange {
  if (!("stream" in request)) return new Http1Exchange(request, response as ServerResponse, target, foreign);
  const { stream } = request;
  // The compatibility layer would send an empty trailer section before ours.
  stream.removeAllListeners("wantTrailers");
  return new Http2Exchange(stream, request.headers, request.rawHeaders);
}

function authorityOf(request: IncomingMessage | Http2ServerRequest): string | null {
  return ("authority" in request && request.authority) || readField(request.rawHeaders, "host");
}

// The connections are somebody else's server's, and so are their time-outs.
const foreign: ConnectionPolicy = {
  closing: () => false,
  stallTimeoutMs: 0,
  requestsMax: Number.POSITIVE_INFINITY,
  keepAlive: [],
};
