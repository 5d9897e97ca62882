import type { Socket } from "node:net";
import { defaultHttp2Limits, Http2Connection, type Http2Limits, QueueBudget } from "../http2/index.ts";
import { EngineExchange } from "./engine-exchange.ts";
import { readField } from "./header-fields.ts";
import type { Http2ServerOptions } from "./http2-server.ts";
import type { Limits } from "./limits.ts";
import { headerTooLarge, readRequestTarget } from "./request-line.ts";

/** Serves HTTP/2 connections with the gateway's own engine. */
export interface EngineServer {
  /** Takes a connection over whose first bytes are the preface. */
  take(socket: Socket): void;
  /** Ends every connection as soon as its streams have ended; none that crosses is lost. */
  drain(): void;
  /** Whether any stream is open, or its answer not sent yet. */
  readonly busy: boolean;
}

/** Makes the server; see {@link createHttp2Server} for the same on node:http2. */
export function createEngineServer({ limits, serve, refuse }: Http2ServerOptions): EngineServer {
  const connections = new Set<Http2Connection>();
  const http2Limits = toHttp2Limits(limits);
  const budget = new QueueBudget(http2Limits.queuedBytesTotal);
  let draining = false;
  return {
    take(socket) {
      const connection = new Http2Connection(socket, {
        limits: http2Limits,
        budget,
        onStream: (stream) => {
          const exchange = new EngineExchange(stream, socket);
          if (stream.headTooLarge) {
            refuse(exchange, headerTooLarge(limits));
            return;
          }
          const authority = stream.head.authority ?? readField(exchange.fields, "host");
          const target = readRequestTarget(exchange.target, authority, true, limits);
          if (typeof target === "string") serve(exchange);
          else refuse(exchange, target);
        },
        onClose: () => connections.delete(connection),
        // A defect of ours, and nobody's call to answer for.
        onFault: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
      });
      connections.add(connection);
      // Accepted before the drain began, and told of it before its first request.
      if (draining) connection.drain();
    },
    drain() {
      draining = true;
      for (const connection of connections) connection.drain();
    },
    get busy() {
      return [...connections].some((connection) => connection.busy);
    },
  };
}

function toHttp2Limits(limits: Limits): Http2Limits {
  return {
    ...defaultHttp2Limits,
    concurrentStreams: limits.concurrentStreams,
    headerListBytes: limits.headerBytes,
    headerBlockBytes: limits.headerBytes * 4,
    idleTimeoutMs: limits.idleTimeoutMs,
    stallTimeoutMs: Math.min(defaultHttp2Limits.stallTimeoutMs, limits.idleTimeoutMs),
    blockedTimeoutMs: limits.idleTimeoutMs,
    requestTimeoutMs: limits.requestTimeoutMs,
  };
}
