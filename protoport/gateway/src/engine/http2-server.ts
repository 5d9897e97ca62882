import type { Socket } from "node:net";
import {
  BaseExchange,
  checkRequestHead,
  ErrorCode,
  errorName,
  type HeaderFields,
  type Limits,
  noBytes,
  type Peer,
  PreparedHeaderFields,
  type RequestBody,
  resetProblem,
} from "../http/index.ts";
import { AwaitedBody, peerOf } from "../http/node-entry.ts";
import { putBack } from "./first-bytes.ts";
import { dateFields, HttpServer, type HttpServerOptions } from "./http-server.ts";
import { defaultHttp2Limits, type Http2Limits } from "./http2/http2-limits.ts";
import { encodeBlock, encodeStatus } from "./http2/hpack/encoder.ts";
import { Http2Connection } from "./http2/http2-connection.ts";
import type { Http2RequestHead } from "./http2/request-head.ts";
import type { Http2Stream, StreamReceiver } from "./http2/http2-stream.ts";

/** Creates an HTTP/2 server. A graceful shutdown serves streams that the client opens before the GOAWAY arrives. */
export function createHttp2Server(options: HttpServerOptions): HttpServer {
  const { limits, budget, serve, refuse, countError, report } = options;
  const connections = new Set<Http2Connection>();
  const http2Limits = toHttp2Limits(limits);
  const connect = (socket: Socket, firstBytes: Buffer | undefined): Http2Connection => {
    if (firstBytes !== undefined) putBack(socket, firstBytes);
    const peer = peerOf(socket);
    // Identifies the connection for applications, which must not get the socket.
    const key = {};
    const connection = new Http2Connection(socket, {
      limits: http2Limits,
      budget,
      onStream: (stream, head) => {
        const exchange = new SocketHttp2Exchange(stream, head, key, peer, options);
        const { listBytes, host } = head.common;
        const authority = head.authority ?? host;
        const target = checkRequestHead(exchange.httpMethod, exchange.target, authority, true, listBytes, limits);
        if (typeof target !== "string") return refuse(exchange, target);
        serve(exchange);
      },
      onError: (scope, code) => countError(scope, errorName(code)),
      onClose: () => connections.delete(connection),
      // Errors in the engine's own code belong to no call, so they are reported here.
      onFault: (error) =>
        report(error, { errorCode: "ERR_CONNECTION_FAILED", what: "cannot serve an HTTP/2 connection" }),
    });
    connections.add(connection);
    return connection;
  };
  return new HttpServer(connections, connect, () => undefined);
}

function toHttp2Limits(limits: Limits): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.concurrentStreams,
    connectionWindowBytes: limits.connectionWindowBytes,
    headerListBytes: limits.headerBytes,
    headerBlockBytes: limits.headerBytes * 4,
    idleTimeoutMs: limits.idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, limits.idleTimeoutMs),
    blockedTimeoutMs: limits.idleTimeoutMs,
    requestTimeoutMs: limits.requestTimeoutMs,
  };
}

/** A request and its response on one of the engine's HTTP/2 streams. */
class SocketHttp2Exchange extends BaseExchange implements StreamReceiver {
  readonly connection: object;
  readonly peer: Peer;
  readonly body: RequestBody | undefined;
  readonly #stream: Http2Stream;
  readonly #options: HttpServerOptions;

  constructor(stream: Http2Stream, head: Http2RequestHead, connection: object, peer: Peer, options: HttpServerOptions) {
    const { method: httpMethod, path: target, url, fields, common, contentLength = 0 } = head;
    super({ httpMethod, target, url, fields, common });
    this.connection = connection;
    this.peer = peer;
    this.body = stream.remoteEnded ? undefined : new AwaitedBody(stream, contentLength);
    this.#stream = stream;
    this.#options = options;
    stream.receiver = this;
  }

  get httpVersion(): "2.0" {
    return "2.0";
  }

  get isMounted(): boolean {
    return false;
  }

  onReset(code: number, byPeer: boolean): void {
    this.abort(this.#options.stopProblem() ?? resetProblem(code, byPeer ? "client" : "server"));
  }

  protected sendResponse(
    httpStatus: number,
    fields: HeaderFields,
    body: Uint8Array | undefined,
    trailer: HeaderFields | undefined,
  ): void {
    const length = trailer === undefined && body !== undefined ? ["content-length", String(body.byteLength)] : noFields;
    const parts = this.#headerParts(httpStatus, fields, length);
    const trailerBlock = trailer === undefined ? undefined : blockOf(trailer);
    const hasBody = body !== undefined && body.byteLength > 0 && this.httpMethod !== "HEAD";
    this.#stream.respond(parts, hasBody ? body : undefined, trailerBlock);
  }

  protected sendHeader(httpStatus: number, fields: HeaderFields): void {
    this.#stream.sendHeaders(this.#headerParts(httpStatus, fields, noFields), false);
  }

  protected sendPiece(piece: Uint8Array): boolean {
    this.#stream.sendData(piece);
    return this.#stream.queuedBytes > 0;
  }

  protected sendEnd(trailer: HeaderFields = noFields): void {
    this.#stream.end(undefined, trailer.length === 0 ? undefined : blockOf(trailer));
  }

  protected sendReset(): void {
    this.#stream.reset(ErrorCode.internalError);
  }

  #headerParts(httpStatus: number, fields: HeaderFields, length: HeaderFields): readonly Uint8Array[] {
    const dateBlock = blockOf(dateFields());
    return [statusBlock(httpStatus), blockOf(fields), dateBlock, blockOf(length), blockOf(this.addedFields)];
  }
}

const noFields: HeaderFields = [];

function blockOf(fields: HeaderFields): Uint8Array {
  // Equivalent mutant: without this check, an empty block would be encoded.
  if (fields.length === 0) return noBytes;
  return fields instanceof PreparedHeaderFields ? (fields.block ??= encodeBlock(fields)) : encodeBlock(fields);
}

// Cached field blocks for statuses: at most 400, with up to 5 bytes each. Encoding a status takes 0.1 to 0.3 µs.
const statusBlocks = new Map<number, Uint8Array>();

function statusBlock(httpStatus: number): Uint8Array {
  let block = statusBlocks.get(httpStatus);
  if (block === undefined) statusBlocks.set(httpStatus, (block = encodeStatus(httpStatus)));
  return block;
}
