import { AsyncResource } from "node:async_hooks";
import type { ContextValues } from "@connectrpc/connect";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { bodyWasRead, CommonHeaderFields, type Exchange, HttpProblem } from "./exchange/index.ts";
import { findTarget, refuseProblem, serve, type Server, type Target } from "./serve/index.ts";
import { refusePromise } from "./options/index.ts";
import { NodeHttp1Exchange, NodeHttp2Exchange, readNodeTarget, readParsedBody, willEnd } from "./node/index.ts";

/**
 * A response of node:http or node:http2. Their types declare the same methods in different ways, and a union of them
 * could not be called without these common signatures.
 */
export type NodeServerResponse = (ServerResponse | Omit<Http2ServerResponse, "write">) & {
  writeHead(status: number, headers?: OutgoingHttpHeaders): NodeServerResponse;
  write(chunk: string | Uint8Array, callback?: (error: Error | null | undefined) => void): boolean;
  write(
    chunk: string | Uint8Array,
    encoding: BufferEncoding,
    callback?: (error: Error | null | undefined) => void,
  ): boolean;
  end(callback?: () => void): unknown;
  end(chunk: string | Uint8Array, callback?: () => void): unknown;
  end(chunk: string | Uint8Array, encoding: BufferEncoding, callback?: () => void): unknown;
};

/**
 * A request handler for node's HTTP servers, which Express and Fastify (`req.raw`, `reply.raw`) can call too.
 *
 * Where a body parser has read the body, what it has left in `request.body` is taken for it: bytes, text, or a value that
 * was parsed from JSON.
 *
 * @param next - called instead of answering when nothing matches, or with an Error when the body was read and nothing was
 * left; without `next`, such a request is answered as `Internal`
 */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: NodeServerResponse,
  next?: (error?: Error) => void,
) => void;

/** Options of {@link createNodeHandler}. */
export interface NodeHandlerOptions {
  readonly fallback?: NodeHandler;
  readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
}

/** Creates the handler that serves a gateway's RPCs inside another server. */
export function createNodeHandler(server: Server, options: NodeHandlerOptions): NodeHandler {
  const { fallback, contextValues } = options;
  const handle: NodeHandler = (request, response, next) => {
    const sent = request.url ?? "";
    const common = new CommonHeaderFields(request.rawHeaders);
    const urlOrProblem = readNodeTarget(request, common, server.limits);
    const url = typeof urlOrProblem === "string" ? urlOrProblem : sent;
    const target = findTarget(server.routes, { httpMethod: request.method ?? "", target: url, common });
    // A request that matches nothing, or asks about the server, belongs to the other server and is passed on untouched.
    if (url === "*" || (target.kind === "unmatched" && target.unknown)) {
      if (next !== undefined) return next();
      if (fallback !== undefined) return fallback(request, response);
    }
    const { socket } = request;
    // Sent behind the answer that ended the connection, or over HTTP/2 by a client that has gone meanwhile: it cannot be
    // answered, so it must not be carried out.
    if (socket.writableEnded) return;
    // Whether it was sent before or behind the answer that will end the connection, as it may over HTTP/1.1, shows only
    // when its turn to be answered comes: behind it, that is never.
    if (response.socket === null && willEnd(socket)) {
      // In its own context: node tells of it in that of the call before.
      const goOn = AsyncResource.bind(() => handle(request, response, next));
      response.once("socket", goOn);
      return;
    }
    const { contentType } = common;
    // A body parser that leaves a body has undone its content coding.
    if (request.readableDidRead) common.contentEncoding = null;
    const exchange = toExchange(request, response, url, common);
    if (typeof urlOrProblem !== "string") return refuseProblem(server, exchange, urlOrProblem);
    if (exchange.body !== undefined && request.readableDidRead) {
      // An endpoint gets what was sent, to check a signature of it.
      const left = readParsedBody(request, target.kind === "endpoint" ? null : contentType);
      const parsed = left ?? (needsBody(target, contentType) ? undefined : unreadBody);
      // Waiting for the body would never end.
      if (parsed === undefined)
        return next === undefined ? refuseProblem(server, exchange, bodyWasRead()) : next(bodyWasRead());
      if (parsed instanceof HttpProblem) return refuseProblem(server, exchange, parsed);
      exchange.body.onData(parsed, true);
    }
    serve(server, exchange, target, () =>
      refusePromise(contextValues?.(request), "contextValues must return its result"),
    );
  };
  return handle;
}

/** Returns whether the answer depends on what is in the body, rather than on its being there and its type. */
function needsBody(target: Target, contentType: string | null): boolean {
  if (target.kind === "unmatched") return false;
  return target.kind === "endpoint" || target.needsBody?.(contentType) !== false;
}

/** Stands for a body that no parser has left and nobody reads. It is not empty, because that would count as no body. */
const unreadBody = new Uint8Array(1);

function toExchange(
  request: IncomingMessage | Http2ServerRequest,
  response: NodeServerResponse,
  target: string,
  common: CommonHeaderFields,
): Exchange {
  if (!("stream" in request)) return new NodeHttp1Exchange(request, response as ServerResponse, target, common);
  const { stream } = request;
  // The compatibility layer would send an empty trailer section before ours.
  stream.removeAllListeners("wantTrailers");
  return new NodeHttp2Exchange(stream, request.headers, request.rawHeaders, common, response);
}
