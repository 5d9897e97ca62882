import type { Server as TlsServer, TlsOptions, TLSSocket } from "node:tls";
import { timerMsMax } from "../index.ts";
import type { HttpMajorVersion } from "./http-server.ts";

/** Options of {@link createTlsServer}. */
export interface TlsServerOptions {
  /** Certificate, key and other options of node:tls. The ALPN protocols are set here. */
  readonly tls: TlsOptions;
  /** Milliseconds until a handshake must be complete, unless `tls` says otherwise. */
  readonly handshakeTimeoutMs: number;
  /** Called with each connection once its handshake is complete, and the version that ALPN (RFC 7301) chose. */
  readonly take: (socket: TLSSocket, version: HttpMajorVersion) => void;
}

/**
 * Creates a node:tls server that never listens: pass it connections with `emit("connection", socket)`.
 *
 * A handshake that fails or takes too long ends its own connection only.
 */
export function createTlsServer({ tls, handshakeTimeoutMs, take }: TlsServerOptions): TlsServer {
  // Loaded only where there is TLS: it takes 10 ms to start.
  const { createServer } = process.getBuiltinModule("node:tls");
  const server = createServer({
    handshakeTimeout: Math.min(handshakeTimeoutMs, timerMsMax),
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => socket.destroy());
    take(socket, socket.alpnProtocol === "h2" ? "http2" : "http1");
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}
