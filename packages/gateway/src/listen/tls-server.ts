import type { Socket } from "node:net";
import type { SecureContextOptions, TlsOptions, TLSSocket } from "node:tls";
import { timerMsMax } from "../exchange/index.ts";
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

/** The server's side of TLS, on connections that another server has accepted. */
export interface TlsServer {
  /** Begins the handshake on a connection. One that fails, takes too long or is broken off closes this connection. */
  accept(socket: Socket): void;
  /** Uses a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
}

/** Creates a {@link TlsServer}. */
export function createTlsServer({ tls, handshakeTimeoutMs, take }: TlsServerOptions): TlsServer {
  // Loaded only where there is TLS: it takes 10 ms to start.
  const { createServer } = process.getBuiltinModule("node:tls");
  const server = createServer({
    handshakeTimeout: Math.min(handshakeTimeoutMs, timerMsMax),
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    // As the connection was accepted: a client that has ended its side may still wait for a response.
    socket.allowHalfOpen = true;
    take(socket, socket.alpnProtocol === "h2" ? "http2" : "http1");
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    accept: (socket) => {
      // node:tls reports the end of the client's side within a handshake only to a socket that closes with it.
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
    },
    setSecureContext: (context) => server.setSecureContext(context),
  };
}
