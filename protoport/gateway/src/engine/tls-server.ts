import type { Socket } from "node:net";
import type { SecureContextOptions, TlsOptions, TLSSocket } from "node:tls";
import { timerMsMax } from "../http/index.ts";
import type { HttpMajorVersion } from "./http-server.ts";

/** Options for {@link createTlsServer}. */
interface TlsServerOptions {
  /** Certificate, key and other node:tls options. The ALPN protocols cannot be set. */
  readonly tls: TlsOptions;
  /** Milliseconds in which a client must complete the handshake, unless `tls` sets another limit. */
  readonly handshakeTimeoutMs: number;
  /** Called with each connection after the handshake. ALPN (RFC 7301) has selected the HTTP version. */
  readonly take: (socket: TLSSocket, version: HttpMajorVersion) => void;
}

/** Server-side TLS, for connections that another server has accepted. */
export interface TlsServer {
  /** Begins the handshake on a connection. If the handshake fails or times out, the connection is closed. */
  accept(socket: Socket): void;
  /** Uses a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
}

/** Creates a {@link TlsServer}. */
export function createTlsServer({ tls, handshakeTimeoutMs, take }: TlsServerOptions): TlsServer {
  // Loads node:tls only if TLS is used, because loading adds 10 ms to the start.
  const { createServer } = process.getBuiltinModule("node:tls");
  const server = createServer({
    handshakeTimeout: Math.min(handshakeTimeoutMs, timerMsMax),
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    // Half-open like the raw socket, because a client that has closed its side may still wait for a response.
    socket.allowHalfOpen = true;
    take(socket, socket.alpnProtocol === "h2" ? "http2" : "http1");
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    accept: (socket) => {
      // Disables half-open mode during the handshake, so that node:tls reports that the client has closed its side.
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
    },
    setSecureContext: (context) => server.setSecureContext(context),
  };
}
