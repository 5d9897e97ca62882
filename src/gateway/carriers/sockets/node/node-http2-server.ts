import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { HttpServer, HttpServerOptions } from "../http-server.ts";
import { type HeaderFields, headerTooLarge, readRequestTarget } from "../../index.ts";
import { openExchangesOf, NodeHttp2Exchange } from "./node-http2-exchange.ts";
import { watchIdle } from "./idle-watch.ts";

/** Creates an HTTP/2 server on node:http2. A drain sends GOAWAY (RFC 9113 §6.8) and accepts no new streams. */
export function createNodeHttp2Server({ limits, serve, refuse }: HttpServerOptions): HttpServer {
  // Loaded only when it is used: it takes 8 ms, and our own HTTP/2 does not need it.
  const { createServer } = process.getBuiltinModule("node:http2");
  const server = createServer({
    // By default, node resets requests with more than 128 fields. Their bytes are bounded instead, with at least 32 for
    // each field, and one field too many still gets an answer.
    maxHeaderListPairs: Math.ceil(limits.headerBytes / 32) + 1,
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: initialWindowBytes,
      enablePush: false,
    },
  });
  const sessions = new Set<ServerHttp2Session>();
  const sessionOf = new WeakMap<Socket, ServerHttp2Session>();
  // Not `request`, which would handle every stream a second time.
  server.on("stream", (stream: ServerHttp2Stream, header, _flags, rawFields) => {
    const fields: HeaderFields = rawFields;
    const exchange = new NodeHttp2Exchange(stream, header, fields);
    const authority = header[":authority"] ?? exchange.common.host;
    const target = readRequestTarget(exchange.target, authority, true, limits);
    if (exchange.common.listBytes > limits.headerBytes) {
      refuse(exchange, headerTooLarge(limits));
    } else if (typeof target === "string") serve(exchange);
    else refuse(exchange, target);
  });
  server.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    // The socket itself: the proxy in `session.socket` throws once the session has released it.
    const socket = session.socket.on("close", ignore);
    sessionOf.set(socket, session);
    // A handler may take its time with a complete request; but a client that still owes part of a body, or does not
    // read its answer, cannot keep a stream by doing nothing.
    const carried = (): number => carriedBy(session, socket);
    watchIdle(socket, carried, limits.idleTimeoutMs, () => endIdle(session, socket));
    session.on("error", ignore);
  });
  server.on("sessionError", ignore);
  return {
    take(socket) {
      // node:http2 treats a client that has ended its side as gone; half open, the connection would never be closed.
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
      const session = sessionOf.get(socket);
      return {
        get busy() {
          return session !== undefined && openExchangesOf(session).size > 0;
        },
      };
    },
    drain() {
      for (const session of sessions) session.close();
    },
    get busy() {
      return [...sessions].some((session) => openExchangesOf(session).size > 0);
    },
    get connections() {
      return sessions.size;
    },
    get requests() {
      return [...sessions].reduce((sum, session) => sum + openExchangesOf(session).size, 0);
    },
    close: () => void server.close(),
  };
}

/** Resets the streams that wait for the client of a session that was idle for too long, or ends the session. */
function endIdle(session: ServerHttp2Session, socket: Socket): void {
  // The client was told that the session is over, and has not closed its side.
  if (session.destroyed) return void socket.destroy();
  const exchanges = openExchangesOf(session);
  for (const exchange of exchanges) {
    // Not even its reset has been sent since the last look.
    if (exchange.givenUp) return session.destroy();
    if (exchange.awaitsClient) exchange.reset();
  }
  if (exchanges.size === 0) session.close();
}

/**
 * Returns a number that changes when a session carries something: bytes while it has streams, otherwise its latest
 * stream, so that a PING does not keep it open. Constant once the session is over, whatever its client still sends.
 */
function carriedBy(session: ServerHttp2Session, socket: Socket): number {
  if (session.destroyed) return 0;
  if (openExchangesOf(session).size > 0) return socket.bytesRead + socket.bytesWritten;
  return -(session.state.lastProcStreamID ?? 0);
}

// 256 KiB: four times HTTP/2's default, so that a large message does not take a round trip for each 64 KiB.
const initialWindowBytes = 256 * 1024;

// An error of a connection ends that connection, and concerns nothing else.
function ignore(): void {}
