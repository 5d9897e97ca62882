import type { Socket } from "node:net";
import { defaultHttp2Limits, Http2Connection, type Http2Limits } from "./http2/index.ts";
import { SocketHttp2Exchange } from "./http2-exchange.ts";
import { errorName, type Limits, checkRequestHead } from "../http/index.ts";
import { putBack } from "./first-bytes.ts";
import { HttpServer, type HttpServerOptions } from "./http-server.ts";
import { peerOf } from "./peer.ts";

/** Creates an HTTP/2 server. A graceful shutdown serves streams that the client opens before the GOAWAY arrives. */
export function createHttp2Server({
  limits,
  budget,
  serve,
  refuse,
  countError,
  report,
}: HttpServerOptions): HttpServer {
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
        const exchange = new SocketHttp2Exchange(stream, head, key, peer);
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
