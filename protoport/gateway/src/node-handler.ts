import { AsyncResource } from "node:async_hooks";
import type { ContextValues } from "@connectrpc/connect";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import {
  bodyConsumedProblem,
  CommonHeaderFields,
  type Exchange,
  HttpProblem,
  readHeaderField,
  refusePromise,
  requireField,
} from "./http/index.ts";
import {
  type CurrentServer,
  type FaultReporter,
  fieldFailure,
  findTarget,
  refuseProblem,
  serve,
  type Server,
  type Target,
} from "./serve/index.ts";
import {
  NodeHttp1Exchange,
  NodeHttp2Exchange,
  checkNodeRequestHead,
  parsePeer,
  readParsedBody,
  requestsUpgrade,
  stopReadingAfter,
  willClose,
} from "./http/node-entry.ts";

/**
 * A response from node:http or node:http2. The types of node:http and node:http2 declare the same methods differently.
 * Without these common signatures, code could not call methods of the union type.
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
 * A request handler for node's HTTP servers. Express and Fastify (`req.raw`, `reply.raw`) can also call this handler.
 *
 * If a body parser has already read the body, the parser's result in `request.rawBody` or `request.body` is used. The
 * result is bytes, a string, or a value parsed from JSON.
 *
 * @param next - called if no route matches, or with an Error if the body was read and a body parser's result is
 * missing. Without `next`, the client gets `Internal`
 */
export type NodeHandler = (
  request: IncomingMessage | Http2ServerRequest,
  response: NodeServerResponse,
  next?: (error?: Error) => void,
) => void;

/** Options for {@link createNodeHandler}. */
export interface NodeHandlerOptions {
  readonly fallback?: NodeHandler;
  readonly contextValues?: (request: IncomingMessage | Http2ServerRequest) => ContextValues;
  readonly clientAddress?: (request: IncomingMessage | Http2ServerRequest) => string | undefined;
}

/** The server for new requests, and the options for {@link createNodeHandler}. A proxy replaces both. */
export interface CurrentNodeServer extends CurrentServer {
  handlerOptions: NodeHandlerOptions;
}

interface HandlerRequestHead {
  readonly common: CommonHeaderFields;
  /** The target in origin form. */
  readonly url: string;
  readonly problem: HttpProblem | undefined;
  readonly target: Target;
  /** Whether another server handles the request: no route matches, or the request is `OPTIONS *`. */
  readonly isPassedOn: boolean;
}

/** Checks a request's head, and finds its route. */
function readHead({ routes, limits }: Server, request: IncomingMessage | Http2ServerRequest): HandlerRequestHead {
  const originalUrl = request.url ?? "";
  const common = new CommonHeaderFields(request.rawHeaders);
  const urlOrProblem = isAmbiguous(originalUrl)
    ? new HttpProblem("ERR_HTTP_INVALID", "the request target is not valid")
    : checkNodeRequestHead(request, common, limits);
  const isValid = typeof urlOrProblem === "string";
  const url = isValid ? urlOrProblem : originalUrl;
  const get = (name: string): string | null => readHeaderField(request.rawHeaders, name);
  const httpMethod = request.method ?? "";
  const target = findTarget(routes, { httpMethod, target: url, common, literalsAsSent: true, get });
  const isPassedOn = url === "*" || (target.kind === "unmatched" && target.isUnknownPath);
  return { common, url, problem: isValid ? undefined : urlOrProblem, target, isPassedOn };
}

/** Returns whether the handler of {@link createNodeHandler} serves a request, instead of passing it on. */
export function matchesRoute(server: Server, request: IncomingMessage | Http2ServerRequest): boolean {
  return !readHead(server, request).isPassedOn;
}

/** Creates the handler that serves a gateway in another server. */
export function createNodeHandler(current: CurrentNodeServer): NodeHandler {
  const handle: NodeHandler = (request, response, next) => {
    const { server, handlerOptions } = current;
    const { fallback, contextValues, clientAddress } = handlerOptions;
    const isLast = !("stream" in request) && requestsUpgrade(request.rawHeaders);
    if (isLast) stopReadingAfter(request);
    const { common, url, problem, target, isPassedOn } = readHead(server, request);
    if (isPassedOn) {
      if (isLast && !response.headersSent) response.setHeader("connection", "close");
      if (next !== undefined) return next();
      if (fallback !== undefined) return fallback(request, response);
    }
    const { socket } = request;
    // An earlier response or the client has closed the connection. No response can be sent, so the request must not be
    // processed. After a reset, node emits no further event that would cancel the call.
    if (socket.writableEnded || socket.destroyed) return;
    // A pipelined HTTP/1.1 request must not be processed if an earlier response closes the connection. The request
    // waits until node assigns the socket to the request's response. After a closing response, node never assigns the
    // socket.
    if (response.socket === null && willClose(socket)) {
      // Restores this request's async context, because node emits the event in the previous request's context.
      const resume = AsyncResource.bind(() => handle(request, response, next));
      response.once("socket", resume);
      return;
    }
    const { contentType } = common;
    // If the body was already read, a body parser has decompressed the body.
    if (request.readableDidRead) common.contentEncoding = null;
    const exchange = toExchange(request, response, url, common);
    if ("stream" in request) dropForbiddenFields(response, server.report);
    if (problem !== undefined) return refuseProblem(server, exchange, problem);
    if (exchange.body !== undefined && request.readableDidRead) {
      // An endpoint gets the body's bytes as sent, for example to verify a signature.
      const parsedBody = readParsedBody(request, target.kind === "endpoint" ? null : contentType);
      const parsed = parsedBody ?? (needsBody(target, contentType) ? undefined : placeholderBody);
      // The body was already consumed, so a wait for the body would never end.
      if (parsed === undefined)
        return next === undefined
          ? refuseProblem(server, exchange, bodyConsumedProblem())
          : next(bodyConsumedProblem());
      if (parsed instanceof HttpProblem) return refuseProblem(server, exchange, parsed);
      exchange.body.onData(parsed, true);
    }
    serve(server, exchange, target, () => {
      if (clientAddress !== undefined && server.trustedProxies === undefined) {
        setPeer(exchange, refusePromise(clientAddress(request), "clientAddress must be synchronous"));
      }
      return refusePromise(contextValues?.(request), "contextValues must be synchronous");
    });
  };
  return handle;
}

/** Sets an exchange's peer. Keeps the connection's peer if the address is the same or is not an IP address. */
function setPeer(exchange: Exchange, address: string | undefined): void {
  if (address === undefined || address === exchange.peer.address) return;
  const peer = parsePeer(address);
  if (peer !== undefined) Object.defineProperty(exchange, "peer", { value: peer });
}

/** Returns whether the response depends on the body's content, and not only on the body's presence and type. */
function needsBody(target: Target, contentType: string | null): boolean {
  if (target.kind === "unmatched") return false;
  return target.kind === "endpoint" || target.needsBody?.(contentType) !== false;
}

/** Removes the response header fields that HTTP forbids. Only node:http2 lets an application set them. */
function dropForbiddenFields(response: NodeServerResponse, report: FaultReporter): void {
  for (const [name, value] of Object.entries(response.getHeaders())) {
    try {
      for (const line of [value].flat()) requireField(name, String(line));
    } catch (error) {
      response.removeHeader(name);
      report(error, fieldFailure);
    }
  }
}

/** Replaces a consumed body with irrelevant content. Has one byte, because an empty body counts as no body. */
const placeholderBody = new Uint8Array(1);

function toExchange(
  request: IncomingMessage | Http2ServerRequest,
  response: NodeServerResponse,
  target: string,
  common: CommonHeaderFields,
): Exchange {
  if (!("stream" in request)) return new NodeHttp1Exchange(request, response as ServerResponse, target, common);
  const { stream } = request;
  // Node's compatibility layer would send an empty trailer section before the gateway's trailer section.
  stream.removeAllListeners("wantTrailers");
  return new NodeHttp2Exchange(stream, request.headers, request.rawHeaders, common, response);
}

/**
 * Returns whether middleware may find another path in a target in absolute form (RFC 9112 §3.2.2). Express uses node's
 * `url.parse`, which ends a host at characters such as `;`, although RFC 3986 allows them in a name.
 */
function isAmbiguous(target: string): boolean {
  return !target.startsWith("/") && target !== "*" && !plainAbsoluteForm.test(target);
}

const plainAbsoluteForm = /^https?:\/\/(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?:[/?]|$)/i;
