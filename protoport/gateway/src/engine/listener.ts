import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { SecureContextOptions, TlsOptions, TLSSocket } from "node:tls";
import {
  clientClosedRequest,
  HttpProblem,
  type OptionNames,
  type Peer,
  refuseUnknownOptions,
  maxTimerMs,
  withCode,
} from "../http/index.ts";
import { type TrustedProxies, unixAddress } from "../http/node-entry.ts";
import { BacklogBudget } from "./backlog.ts";
import { bind, bindOptionNames, type BindOptions, type BoundAddress } from "./bind.ts";
import { type ConnectionAgeOptions, type ConnectionAges, createConnectionAges } from "./connection-ages.ts";
import { consumeProxyHeader, detectProtocol, type FirstProtocol, putBack } from "./first-bytes.ts";
import {
  type GatewayLoad,
  type HttpMajorVersion,
  type HttpServer,
  type HttpServerOptions,
  overridePeer,
  type ServedConnection,
} from "./http-server.ts";
import { createHttp1Server } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";
import { type OpenItem, OpenList } from "./open-list.ts";

/** Options for listening on a port or Unix socket. */
export interface ListenOptions extends BindOptions, ConnectionAgeOptions {
  /**
   * TLS options such as the certificate and the key. `requestCert` and `ca` verify client certificates. With TLS,
   * connections without TLS are closed unless `allowCleartext` is set.
   */
  readonly tls?: TlsOptions;
  readonly allowCleartext?: boolean;
  /**
   * Whether connections from the `trustedProxies` begin with a PROXY protocol header (version 1 or 2), which precedes
   * TLS. From other peers, a PROXY header is refused as invalid HTTP. PROXY headers are not supported with TLS on a
   * Unix socket. Default false.
   */
  readonly proxyProtocol?: boolean;
}

const listenOptionNames: OptionNames<ListenOptions> = {
  ...bindOptionNames,
  maxConnectionAgeMs: true,
  maxConnectionAgeGraceMs: true,
  tls: true,
  allowCleartext: true,
  proxyProtocol: true,
};

interface ListenerOptions extends Omit<HttpServerOptions, "budget" | "countError" | "stopProblem"> {
  /** The proxies that may report a client address in a PROXY header. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/** A port that serves HTTP/1.1 and HTTP/2, detected from the first bytes or, with TLS, from ALPN. */
export class Listener {
  readonly #options: HttpServerOptions;
  readonly #servers: Record<HttpMajorVersion, HttpServer>;
  readonly #sockets: OpenConnections;
  #netServer: Server | undefined;
  #isOpening = false;
  #tls: TlsServer | undefined;
  #cleartext = true;
  #isUnix = false;
  readonly #trustedProxies: TrustedProxies | undefined;
  /** The proxies that send a PROXY header at the start of each connection. */
  #proxiesWithHeader: TrustedProxies | undefined;
  /** The raw sockets of TLS connections, by remote and local address and port. */
  readonly #rawSocketByEndpoints = new Map<string, Socket>();
  /** The peers from the PROXY headers on TLS connections, by remote and local address and port. */
  readonly #sourceByEndpoints = new Map<string, Peer>();
  readonly #badRequests = new Map<number, number>();
  readonly #http2Errors = { connection: new Map<string, number>(), stream: new Map<string, number>() };
  #ages: ConnectionAges | undefined;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #drained: Promise<void> | undefined;
  /** Aborts when the drain begins. The reason is the error for a later or pending `listen`. */
  readonly #draining = new AbortController();

  constructor(options: ListenerOptions) {
    this.#trustedProxies = options.trustedProxies;
    const { refuse } = options;
    this.#options = {
      ...options,
      budget: new BacklogBudget(options.limits.backlogBytes),
      refuse: (exchange, problem) => {
        if (problem.httpStatus !== clientClosedRequest) countOne(this.#badRequests, problem.httpStatus);
        refuse(exchange, problem);
      },
      stopProblem: () =>
        performance.now() < this.#deadlineMs
          ? undefined
          : new HttpProblem("ERR_SERVER_STOPPING", "the server is stopping"),
      countError: (scope, code) => countOne(this.#http2Errors[scope], code),
    };
    this.#sockets = new OpenConnections(options.limits.connections);
    this.#servers = { http1: createHttp1Server(this.#options), http2: createHttp2Server(this.#options) };
  }

  /**
   * Starts listening. The method may be called once. Rejects with errors from `net.Server`, such as EADDRINUSE. Also
   * rejects with a RangeError for a time that is not above 0, or a TypeError for unknown options. Rejects with
   * ERR_OPTIONS if `drain` is called before the listener is ready.
   */
  async listen(options: ListenOptions): Promise<BoundAddress> {
    refuseUnknownOptions(options, listenOptionNames, "listen");
    this.#draining.signal.throwIfAborted();
    if (this.#netServer !== undefined || this.#isOpening)
      throw withCode(new Error("the gateway is already listening"), "ERR_OPTIONS");
    this.#isOpening = true;
    try {
      return await this.#open(options);
    } finally {
      this.#isOpening = false;
    }
  }

  async #open(options: ListenOptions): Promise<BoundAddress> {
    this.#isUnix = options.path !== undefined;
    if (this.#isUnix && options.proxyProtocol === true && options.tls !== undefined)
      throw withCode(new Error(proxyHeaderNeedsPort), "ERR_OPTIONS");
    this.#ages = createConnectionAges(options);
    this.#tls = options.tls === undefined ? undefined : this.#openTls(options.tls);
    this.#proxiesWithHeader = options.proxyProtocol === true ? this.#trustedProxies : undefined;
    this.#cleartext = options.tls === undefined || options.allowCleartext === true;
    // Sockets are half-open, because an HTTP/2 client that has closed its side may still wait for a response. An
    // HTTP/1.1 client may wait for the error that its request is incomplete.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    const bound = await bind(server, options);
    this.#netServer = server;
    if (this.#draining.signal.aborted) server.close();
    this.#draining.signal.throwIfAborted();
    return bound;
  }

  get load(): GatewayLoad {
    const { http1, http2 } = this.#servers;
    return {
      connections: { http1: http1.connections, http2: http2.connections },
      requests: { http1: http1.requests, http2: http2.requests },
      backlogBytes: this.#options.budget.bytes,
      badRequests: this.#badRequests,
      http2Errors: this.#http2Errors,
    };
  }

  /** Uses a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void {
    this.#tls?.setSecureContext(context);
  }

  /** Stops accepting connections, waits for requests in flight, and closes. Destroys connections after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void> {
    // A second call of `drain` can only shorten the deadline.
    this.#deadlineMs = Math.min(this.#deadlineMs, performance.now() + timeoutMs);
    this.#draining.abort(withCode(new Error("the gateway was drained and cannot listen again"), "ERR_OPTIONS"));
    return (this.#drained ??= this.#closeGracefully());
  }

  #openTls(tls: TlsOptions): TlsServer {
    return createTlsServer({
      tls,
      // The handshake gets no more time than a request header, which follows the handshake.
      handshakeTimeoutMs: this.#options.limits.headerTimeoutMs,
      take: (socket, version) => this.#serve(socket, version, undefined),
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    // An error closes only this connection, also before and after an HTTP server owns the socket.
    socket.on("error", destroyThis);
    const { headerTimeoutMs } = this.#options.limits;
    if (this.#proxiesWithHeader?.has(this.#isUnix ? unixAddress : (socket.remoteAddress ?? "")) !== true)
      return this.#detectProtocol(socket);
    consumeProxyHeader(socket, headerTimeoutMs, (source) => {
      if (source !== undefined) this.#overridePeer(socket, source);
      this.#detectProtocol(socket);
    });
  }

  #detectProtocol(socket: Socket): void {
    detectProtocol(socket, this.#options.limits.headerTimeoutMs, (protocol, bytes) =>
      this.#handOver(socket, protocol, bytes),
    );
  }

  #overridePeer(socket: Socket, source: Peer): void {
    if (this.#tls === undefined) overridePeer(socket, source);
    else rememberUntilClose(this.#sourceByEndpoints, socket, source);
  }

  #handOver(socket: Socket, protocol: FirstProtocol, bytes: Buffer): void {
    if (protocol === "tls" && this.#tls !== undefined) this.#decrypt(socket, this.#tls, bytes);
    else if (protocol !== "tls" && this.#cleartext) this.#serve(socket, protocol, bytes);
    else socket.destroy();
  }

  #decrypt(socket: Socket, tls: TlsServer, bytes: Buffer): void {
    putBack(socket, bytes);
    // On a Unix socket, a TLS connection cannot be assigned to a raw socket.
    if (this.#isUnix) this.#sockets.setConnection(socket, opaqueTlsConnection);
    else rememberUntilClose(this.#rawSocketByEndpoints, socket, socket);
    tls.accept(socket);
  }

  #serve(socket: Socket, version: HttpMajorVersion, bytes: Buffer | undefined): void {
    const key = this.#tls === undefined ? "" : addressKeyOf(socket);
    const rawSocket = this.#rawSocketByEndpoints.get(key) ?? socket;
    const source = this.#sourceByEndpoints.get(key);
    if (source !== undefined) overridePeer(socket, source);
    else if (this.#isUnix && socket.remoteAddress === undefined)
      overridePeer(socket, { address: unixAddress, port: 0 });
    // Reads the address, so that node caches the address for the time after the connection has closed.
    void socket.remoteAddress;
    const connection = this.#servers[version].take(socket, bytes);
    this.#sockets.setConnection(rawSocket, connection);
    this.#ages?.add(socket, connection);
  }

  async #closeGracefully(): Promise<void> {
    const closed = this.#netServer?.listening === true ? once(this.#netServer, "close") : undefined;
    this.#netServer?.close();
    for (const server of Object.values(this.#servers)) server.drain();
    await this.#waitUntilIdle();
    for (const socket of this.#sockets) socket.destroy();
    for (const server of Object.values(this.#servers)) server.close();
    await closed;
    // Waits until aborted calls have reported their end, because the caller may exit the process after `drain`.
    while (this.#isBusy()) await new Promise(setImmediate);
  }

  /** Resolves when all connections have closed or been idle for {@link idleMs}, or at the deadline. */
  async #waitUntilIdle(): Promise<void> {
    // Idle HTTP/1.1 connections stay open, because a request may be in transit, whose response closes the connection.
    let idleSinceMs = performance.now();
    while (this.#sockets.size > 0 && performance.now() < this.#deadlineMs) {
      if (this.#isBusy()) idleSinceMs = performance.now();
      else if (performance.now() - idleSinceMs >= idleMs) break;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  #isBusy(): boolean {
    return this.#servers.http1.busy || this.#servers.http2.busy;
  }
}

// The key contains addresses and ports of both ends, because a proxy may connect from one port to two local addresses.
function addressKeyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function rememberUntilClose<Value>(values: Map<string, Value>, socket: Socket, value: Value): void {
  const key = addressKeyOf(socket);
  values.set(key, value);
  socket.on("close", () => values.delete(key));
}

function destroyThis(this: Socket): void {
  this.destroy();
}

function countOne<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

// The raw socket of a TLS connection is found by its addresses, which Unix sockets do not have.
const proxyHeaderNeedsPort = "proxyProtocol with tls requires a TCP port, not a Unix socket";

/** Represents a TLS connection on a Unix socket, which counts as busy because its requests are unknown. */
const opaqueTlsConnection: ServedConnection = { busy: true };

// Milliseconds without an open request after which idle connections are closed. One second is far above a round trip.
const idleMs = 1000;
const pollMs = 10;

/** Maximum connections beyond the limit. 64 are enough for probes and an operator, and take about 2 MiB. */
const maxSpare = 64;

/**
 * The open connections on a port. Connections up to the limit are never closed in favour of new connections.
 * {@link maxSpare} more are served, because an orchestrator would restart a full server if its probes failed. Each
 * further connection closes the oldest one beyond the limit that has no request. A connection with a request stays
 * open, because its client could not know whether the handler has run.
 */
class OpenConnections {
  readonly #limit: number;
  readonly #sockets = new OpenList<Socket & OpenItem>();
  /** The sockets beyond the limit, oldest first, each with its connection object, if known. */
  readonly #beyondLimit = new Map<Socket, ServedConnection | undefined>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#sockets.size;
  }

  [Symbol.iterator](): ArrayIterator<Socket> {
    return this.#sockets[Symbol.iterator]();
  }

  /** Counts a new connection until the connection closes. */
  add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#remove(socket));
    if (this.#keptConnections > this.#limit) this.#addSpare(socket);
  }

  /** Records the connection object that serves a socket. */
  setConnection(socket: Socket, connection: ServedConnection): void {
    if (this.#beyondLimit.has(socket)) this.#beyondLimit.set(socket, connection);
  }

  get #keptConnections(): number {
    return this.#sockets.size - this.#beyondLimit.size;
  }

  #addSpare(socket: Socket): void {
    this.#beyondLimit.set(socket, undefined);
    if (this.#beyondLimit.size > maxSpare) this.#closeOldest();
  }

  /** Closes the oldest connection beyond the limit that has no request. The newest connection never has a request. */
  #closeOldest(): void {
    for (const [socket, connection] of this.#beyondLimit) {
      if (connection?.busy === true) continue;
      this.#remove(socket);
      socket.destroy();
      return;
    }
  }

  #remove(socket: Socket): void {
    this.#sockets.delete(socket);
    this.#beyondLimit.delete(socket);
    const [next] = this.#beyondLimit.keys();
    if (next !== undefined && this.#keptConnections < this.#limit) this.#beyondLimit.delete(next);
  }
}

interface TlsServerOptions {
  /** Certificate, key and other node:tls options. The ALPN protocols cannot be set. */
  readonly tls: TlsOptions;
  /** Milliseconds in which a client must complete the handshake, unless `tls` sets another limit. */
  readonly handshakeTimeoutMs: number;
  /** Called with each connection after the handshake. ALPN (RFC 7301) has selected the HTTP version. */
  readonly take: (socket: TLSSocket, version: HttpMajorVersion) => void;
}

/** Server-side TLS, for connections that another server has accepted. */
interface TlsServer {
  /** Begins the handshake on a connection. If the handshake fails or times out, the connection is closed. */
  accept(socket: Socket): void;
  /** Uses a renewed certificate for new connections. */
  setSecureContext(context: SecureContextOptions): void;
}

function createTlsServer({ tls, handshakeTimeoutMs, take }: TlsServerOptions): TlsServer {
  // Loads node:tls only if TLS is used, because loading adds 10 ms to the start.
  const server = process.getBuiltinModule("node:tls").createServer({
    handshakeTimeout: Math.min(handshakeTimeoutMs, maxTimerMs),
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
