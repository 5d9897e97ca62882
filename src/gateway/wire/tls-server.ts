import type { Server as TlsServer, TlsOptions, TLSSocket } from "node:tls";
import type { HttpProtocol } from "./protocol-servers.ts";

/** What {@link createTlsServer} stands on. */
export interface TlsServerOptions {
  /** Certificate, key and what else node:tls takes; which protocols ALPN offers is decided here. */
  readonly tls: TlsOptions;
  /** Milliseconds until a handshake must be complete, where `tls` names no other. */
  readonly handshakeTimeoutMs: number;
  /** Takes a connection whose handshake is complete, with the protocol that ALPN (RFC 7301) has chosen. */
  readonly take: (socket: TLSSocket, protocol: HttpProtocol) => void;
}

/**
 * A node:tls server that never listens: connections are handed to it with `emit("connection", socket)`.
 *
 * A handshake that fails, or takes too long, ends its connection and nothing else.
 */
export function createTlsServer({ tls, handshakeTimeoutMs, take }: TlsServerOptions): TlsServer {
  // Loaded where there is TLS only: it is 10 ms of a start.
  const { createServer } = process.getBuiltinModule("node:tls");
  const server = createServer({
    handshakeTimeout: handshakeTimeoutMs,
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => socket.destroy());
    if (socket.alpnProtocol === "h2") return take(socket, "http2");
    take(socket, "http1");
    // A listener for data takes the socket back from node's parser, which then gets its bytes from the
    // stream. Otherwise a request that comes in several TLS records while an answer is still being written
    // fails: the parser is paused after the first record, and the second one is put to it all the same.
    socket.on("data", ignore);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

function ignore(): void {}
