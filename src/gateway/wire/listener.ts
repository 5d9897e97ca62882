import { once } from "node:events";
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Server as Http1Server } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { SecureContextOptions, Server as TlsServer, TlsOptions, TLSSocket } from "node:tls";
import type { EngineServer } from "./engine-server.ts";
import { exchangeOn } from "./http1-exchange.ts";
import { exchangesOf } from "./http2-exchange.ts";
import type { Limits } from "./limits.ts";
import { sniff } from "./sniff.ts";

/** Where and how to listen. */
export interface ListenOptions {
  /** The address to bind. Default 127.0.0.1: nothing beyond this machine can reach it. */
  readonly host?: string;
  /** The port; 0, the default, for one that is free. */
  readonly port?: number;
  /** Several processes may share the port. */
  readonly reusePort?: boolean;
  /**
   * Certificate and key, and with `requestCert` and `ca` client certificates. With it, connections
   * without TLS are closed unless `allowCleartext`.
   */
  readonly tls?: TlsOptions;
  readonly allowCleartext?: boolean;
  /** What serves HTTP/2: the gateway's own engine, or node:http2. Default "own". */
  readonly http2?: "own" | "node";
}

/** One port on which HTTP/1.1 and HTTP/2 are told apart by their first bytes, or by ALPN under TLS. */
export interface Listener {
  listen(options: ListenOptions): Promise<{ readonly address: string; readonly port: number }>;
  /** Takes a renewed certificate; connections that are open live on. */
  setSecureContext(context: SecureContextOptions): void;
  /** Stops accepting, lets what was taken finish, and closes; what is left after `timeoutMs` is cut. */
  drain(timeoutMs: number): Promise<void>;
  readonly draining: boolean;
}

/** What {@link createListener} stands on. */
export interface ListenerOptions {
  readonly limits: Limits;
  readonly http1: Http1Server;
  /** Makes the server that node:http2 has, for who listens with it. */
  readonly http2: () => Http2Server;
  readonly engine: EngineServer;
}

/** Makes a listener that hands each connection to the server of its protocol. */
export function createListener({ limits, http1, http2: createHttp2, engine }: ListenerOptions): Listener {
  const sockets = new Set<Socket>();
  const http1Sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let deadlineMs = Number.POSITIVE_INFINITY;
  let drained: Promise<void> | undefined;
  let net: Server | undefined;
  let tls: TlsServer | undefined;
  let http2: Http2Server | undefined;

  const openHttp2 = (): Http2Server =>
    createHttp2().on("session", (session) => {
      sessions.add(session);
      session.on("close", () => sessions.delete(session));
    });

  const hand = (socket: Socket, spoken: "http1" | "http2"): void => {
    // Asked for once, the address is still known when the connection has closed and its calls are told of.
    void socket.remoteAddress;
    if (spoken === "http2") {
      if (http2 === undefined) return engine.take(socket);
      // To node:http2 a client that has ended its side is gone; half open, nobody would ever close the connection.
      socket.allowHalfOpen = false;
      http2.emit("connection", socket);
      return;
    }
    http1Sockets.add(socket);
    socket.on("close", () => http1Sockets.delete(socket));
    http1.emit("connection", socket);
  };

  const isBusy = (): boolean =>
    engine.busy ||
    [...sessions].some((session) => exchangesOf(session).size > 0) ||
    [...http1Sockets].some((socket) => exchangeOn(socket) !== undefined);

  const closeGracefully = async (): Promise<void> => {
    const closed = net?.listening === true ? once(net, "close") : undefined;
    net?.close();
    // GOAWAY: streams that are open run to their end, new ones are not taken.
    for (const session of sessions) session.close();
    engine.drain();
    // Idle HTTP/1.1 connections stay: closing one could meet a request on its way. The next answer ends it.
    let quietSinceMs = Date.now();
    while (sockets.size > 0 && Date.now() < deadlineMs) {
      if (isBusy()) quietSinceMs = Date.now();
      else if (Date.now() - quietSinceMs >= quietMs) break;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    for (const socket of sockets) socket.destroy();
    http1.close();
    http2?.close();
    await closed;
    // The calls that were cut learn of it, and are told of, before whoever drains goes on to end the process.
    while (isBusy()) await new Promise(setImmediate);
  };

  const accept = (socket: Socket, options: ListenOptions): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // Until a server has it, and after it let go: an error of a connection is the end of that connection.
    socket.on("error", () => socket.destroy());
    sniff(socket, limits.headerTimeoutMs, (spoken) => {
      if (spoken === "tls") {
        if (tls === undefined) socket.destroy();
        else tls.emit("connection", socket);
      } else if (tls !== undefined && options.allowCleartext !== true) socket.destroy();
      else hand(socket, spoken);
    });
  };

  return {
    get draining() {
      return drained !== undefined;
    },

    async listen(options) {
      if (net !== undefined) throw new Error("the gateway is listening already");
      if (options.http2 === "node") http2 = openHttp2();
      if (options.tls !== undefined) {
        // A handshake comes before the header, so it has no more time than that.
        const handshakeTimeout = limits.headerTimeoutMs;
        // Loaded where there is TLS only: it is 10 ms of a start.
        tls = process
          .getBuiltinModule("node:tls")
          .createServer({ handshakeTimeout, ...options.tls, ALPNProtocols: ["h2", "http/1.1"] });
        tls.on("secureConnection", (socket: TLSSocket) => {
          socket.on("error", () => socket.destroy());
          hand(socket, socket.alpnProtocol === "h2" ? "http2" : "http1");
          // A listener for data takes the socket back from node's parser, which then gets its bytes from the
          // stream. Otherwise a request that comes in several TLS records while an answer is still being written
          // fails: the parser is paused after the first record, and the second one is put to it all the same.
          if (socket.alpnProtocol !== "h2") socket.on("data", ignore);
        });
        // A failed handshake ends that connection.
        tls.on("tlsClientError", (_error, socket) => socket.destroy());
      }
      // Half-open: a client that has ended its side may still be owed an answer. On HTTP/2 what it asked for; on
      // HTTP/1.1, where node takes it to be gone, that its request was cut short.
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => accept(socket, options));
      server.maxConnections = limits.connections;
      const { host = "127.0.0.1", port = 0, reusePort = false } = options;
      server.listen({ host, port, reusePort });
      await once(server, "listening");
      net = server;
      const bound = server.address() as AddressInfo;
      return { address: bound.address, port: bound.port };
    },

    setSecureContext(context) {
      tls?.setSecureContext(context);
    },

    drain(timeoutMs) {
      // A second call can only hurry the first one up.
      deadlineMs = Math.min(deadlineMs, Date.now() + timeoutMs);
      return (drained ??= closeGracefully());
    },
  };
}

function ignore(): void {}

// How long nothing must have been asked before idle connections are cut: far above a round trip.
const quietMs = 1000;
const pollMs = 10;
