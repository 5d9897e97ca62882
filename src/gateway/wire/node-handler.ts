import type { ContextValues } from "@connectrpc/connect";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Exchange } from "./exchange.ts";
import { Http1Exchange } from "./http1-exchange.ts";
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
 * already read the body
 */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  next?: (error?: unknown) => void,
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
    const exchange = toExchange(request, response);
    const required = exchange.httpVersion === "1.1";
    const target = readRequestTarget(exchange.target, authorityOf(request), required, limits);
    if (typeof target !== "string") return refuse(exchange, target);
    const match = matchRequest(table, exchange);
    if (match.kind === "refused" && match.unknown) {
      if (next !== undefined) return next();
      if (options.fallback !== undefined) return options.fallback(request, response);
    }
    // A body parser has left nothing to read, and waiting for it would never end.
    if (!exchange.bodyEmpty && request.readableEnded) {
      const error = new Error("the request body was read before the gateway got it: mount it before any body parser");
      if (next !== undefined) return next(error);
      throw error;
    }
    serve(exchange, match, options.contextValues?.(request));
  };
}

function toExchange(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): Exchange {
  if (!("stream" in request)) {
    return new Http1Exchange(request, response as ServerResponse, request.url ?? "", neverClosing);
  }
  const { stream } = request;
  // The compatibility layer would send an empty trailer section before ours.
  stream.removeAllListeners("wantTrailers");
  return new Http2Exchange(stream, request.headers, request.rawHeaders);
}

function authorityOf(request: IncomingMessage | Http2ServerRequest): string | null {
  return ("authority" in request && request.authority) || readField(request.rawHeaders, "host");
}

function neverClosing(): boolean {
  return false;
}
