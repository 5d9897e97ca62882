import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Exchange } from "./exchange.ts";
import { fieldListBytes, type HeaderFields, readField } from "./header-fields.ts";
import { exchangesOf, Http2Exchange } from "./http2-exchange.ts";
import { watchIdle } from "./idle-watch.ts";
import type { Limits } from "./limits.ts";
import { headerTooLarge, type HttpProblem, readRequestTarget } from "./request-line.ts";

/** What {@link createHttp2Server} stands on. */
export interface Http2ServerOptions {
  readonly limits: Limits;
  readonly serve: (exchange: Exchange) => void;
  readonly refuse: (exchange: Exchange, problem: HttpProblem) => void;
}

/**
 * A node:http2 server that never listens: connections are handed to it with `emit("connection", socket)`.
 *
 * Listens to `stream` alone: a `request` listener beside it would see every stream a second time.
 */
export function createHttp2Server(options: Http2ServerOptions): Http2Server {
  const { limits, serve, refuse } = options;
  // Loaded by whoever asks for it: it is 8 ms of a start, and our own engine needs nothing of it.
  const { createServer } = process.getBuiltinModule("node:http2");
  const server = createServer({
    // node would reset what has more than 128 fields; their bytes are bounded, each counts 32 at least, and one too
    // many is to be answered.
    maxHeaderListPairs: Math.ceil(limits.headerBytes / 32) + 1,
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: initialWindowBytes,
      enablePush: false,
    },
  });
  server.on("stream", (stream: ServerHttp2Stream, header, _flags, rawFields) => {
    const fields: HeaderFields = rawFields;
    const exchange = new Http2Exchange(stream, header, fields);
    const authority = header[":authority"] ?? readField(fields, "host");
    const target = readRequestTarget(exchange.target, authority, true, limits);
    if (fieldListBytes(fields) > limits.headerBytes) {
      refuse(exchange, headerTooLarge(limits));
    } else if (typeof target === "string") serve(exchange);
    else refuse(exchange, target);
  });
  server.on("session", (session: ServerHttp2Session) => {
    // The socket itself: what `session.socket` stands for throws once the session has let go of it.
    const socket = session.socket.on("close", ignore);
    // A handler may take its time with a call whose client has nothing more to say; but a client that owes
    // the rest of a body, or takes nothing of its answer, cannot hold on to a stream by silence.
    watchIdle(socket, bytesOf(session, socket), limits.idleTimeoutMs, () => {
      // Its client was told that it is over and has not closed its side.
      if (session.destroyed) return socket.destroy();
      const exchanges = exchangesOf(session);
      for (const exchange of exchanges) {
        // Not even its reset has gone out since: nothing does.
        if (exchange.givenUp) return session.destroy();
        if (exchange.awaitsClient) exchange.reset();
      }
      if (exchanges.size === 0) session.close();
    });
    session.on("error", ignore);
  });
  server.on("sessionError", ignore);
  return server;
}

/** What a session carries, which is nothing any more once it is over, whatever its client still sends. */
function bytesOf(session: ServerHttp2Session, socket: Socket): Pick<Socket, "bytesRead" | "bytesWritten"> {
  return {
    get bytesRead() {
      return session.destroyed ? 0 : socket.bytesRead;
    },
    get bytesWritten() {
      return session.destroyed ? 0 : socket.bytesWritten;
    },
  };
}

// 256 KiB: four times HTTP/2's own default, so that a large message is not one round trip per 64 KiB.
const initialWindowBytes = 256 * 1024;

// Errors of a connection end that connection; nobody else needs to know.
function ignore(): void {}
