import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import { withCode } from "../errors/index.ts";
import { BacklogBudget, clientClosedRequest, type Exchange, type Peer } from "../exchange/index.ts";
import { type OptionNames, refuseUnknownOptions } from "../options/index.ts";
import { createTrustedProxies, type TrustedProxies, unixAddress } from "../trusted-proxies/index.ts";
import { announce, isAnyoneListening } from "./announcement.ts";
import { bind, bindOptionNames, type BindOptions, type BoundAddress } from "./bind.ts";
import { type ConnectionAgeOptions, type ConnectionAges, createConnectionAges } from "./connection-ages.ts";
import { type FirstProtocol, sniff, takeProxyHeader } from "./first-bytes.ts";
import type {
  GatewayLoad,
  HttpEngine,
  HttpMajorVersion,
  HttpServer,
  HttpServerOptions,
  TakenConnection,
} from "./http-server.ts";
import { type HandedConnections, joinSharedPort } from "./handed-connections.ts";
import { OpenConnections } from "./open-connections.ts";
import { showPeer } from "./peer.ts";
import { createTlsServer, type TlsServer } from "./tls-server.ts";

/** Where and how to listen. */
export interface ListenOptions extends BindOptions, ConnectionAgeOptions {
  /**
   * Certificate and key, and with `requestCert` and `ca` client certificates. When set, connections without TLS are
   * closed unless `allowCleartext`.
   */
  readonly tls?: TlsOptions;
  readonly allowCleartext?: boolean;
  /**
   * Whether connections from the `trustedProxies` begin with a PROXY protocol header, version 1 or 2, before TLS if
   * there is any. On all other connections such a header is bad HTTP. Not possible with TLS on a Unix socket. Default
   * false.
   */
  readonly proxyProtocol?: boolean;
  /**
   * Takes the connections that the parent process hands over (`shareConnections`) instead of listening at `host` and
   * `port`, or `path`. At most one gateway of a process may. Default false.
   */
  readonly handedOver?: boolean;
}

const listenOptionNames: OptionNames<ListenOptions> = {
  ...bindOptionNames,
  maxConnectionAgeMs: true,
  maxConnectionAgeGraceMs: true,
  tls: true,
  allowCleartext: true,
  proxyProtocol: true,
  handedOver: true,
};

/** Options of a {@link Listener}. */
export interface ListenerOptions extends Omit<HttpServerOptions, "budget" | "countError" | "serve"> {
  /** What serves the connections. */
  readonly engine: HttpEngine;
  readonly serve: (exchange: Exchange) => void;
  /** The proxies whose PROXY headers are believed. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/**
 * One port that serves HTTP/1.1 and HTTP/2, told apart by their first bytes or, under TLS, by ALPN. Hands each
 * connection to the server of its HTTP version.
 */
export class Listener {
  readonly #options: HttpServerOptions;
  readonly #servers: Record<HttpMajorVersion, HttpServer>;
  readonly #sockets: OpenConnections;
  #net: Server | undefined;
  #isOpening = false;
  #handed: HandedConnections | undefined;
  #tls: TlsServer | undefined;
  #cleartext = true;
  #isUnix = false;
  readonly #trustedProxies: TrustedProxies | undefined;
  /** The proxies whose connections begin with a PROXY header. */
  #proxiesWithHeader: TrustedProxies | undefined;
  /** The sockets around those inside TLS, by the addresses and ports of both ends. */
  readonly #outside = new Map<string, Socket>();
  /** The peers that PROXY headers have named on connections with TLS, by their outer sockets. */
  readonly #sources = new WeakMap<Socket, Peer>();
  readonly #badRequests = new Map<number, number>();
  readonly #http2Errors = { connection: new Map<string, number>(), stream: new Map<string, number>() };
  #ages: ConnectionAges | undefined;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #drained: Promise<void> | undefined;

  constructor(options: ListenerOptions) {
    this.#trustedProxies = options.trustedProxies;
    const { engine, refuse, serve } = options;
    this.#options = {
      ...options,
      budget: new BacklogBudget(options.limits.backlogBytes),
      serve: (exchange, socket) => {
        if (socket !== undefined && isAnyoneListening()) announce(exchange, socket, this.#net);
        serve(exchange);
      },
      refuse: (exchange, problem) => {
        if (problem.httpStatus !== clientClosedRequest) countOne(this.#badRequests, problem.httpStatus);
        refuse(exchange, problem);
      },
      countError: (scope, code) => countOne(this.#http2Errors[scope], code),
    };
    this.#sockets = new OpenConnections(options.limits.connections);
    this.#servers = {
      http1: engine.createHttp1Server(this.#options),
      http2: engine.createHttp2Server(this.#options),
    };
  }

  /**
   * Starts to listen, once. Rejects with the errors of `net.Server`, such as EADDRINUSE, with a RangeError for a time
   * that is not above 0, with a TypeError for options that do not exist, and when it has been drained, be it meanwhile.
   */
  async listen(options: ListenOptions): Promise<BoundAddress> {
    refuseUnknownOptions(options, listenOptionNames, "listen");
    if (this.#drained !== undefined) throw drained();
    if (this.#net !== undefined || this.#isOpening)
      throw withCode(new Error("the gateway is already listening"), "ERR_OPTIONS");
    this.#isOpening = true;
    try {
      return await this.#open(options);
    } finally {
      this.#isOpening = false;
    }
  }

  async #open(options: ListenOptions): Promise<BoundAddress> {
    if (options.handedOver === true) this.#handed = await joinSharedPort();
    this.#isUnix = this.#handed === undefined ? options.path !== undefined : this.#handed.address.port === 0;
    if (this.#isUnix && options.proxyProtocol === true && options.tls !== undefined)
      throw withCode(new Error(noSourceInTls), "ERR_OPTIONS");
    this.#ages = createConnectionAges(options);
    this.#tls = options.tls === undefined ? undefined : this.#openTls(options.tls);
    if (options.proxyProtocol === true) this.#proxiesWithHeader = this.#trustedProxies ?? nobody;
    this.#cleartext = options.tls === undefined || options.allowCleartext === true;
    // Half-open, because a client that has ended its side may still be waiting: on HTTP/2 for its answer, on HTTP/1.1
    // for an error that says its request was cut short.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    const bound = this.#handed?.address ?? (await bind(server, options));
    this.#net = server;
    if (this.#drained !== undefined) {
      this.#leavePort();
      throw drained();
    }
    this.#handed?.start((socket) => server.emit("connection", socket));
    return bound;
  }

  /** The current load of the port. */
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

  /** Stops accepting, lets requests in flight finish, and closes. Cuts off whatever is left after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void> {
    // A second call can only bring the deadline forward.
    this.#deadlineMs = Math.min(this.#deadlineMs, performance.now() + timeoutMs);
    return (this.#drained ??= this.#closeGracefully());
  }

  #openTls(tls: TlsOptions): TlsServer {
    return createTlsServer({
      tls,
      // The handshake comes before the header, so it gets no more time than the header does.
      handshakeTimeoutMs: this.#options.limits.headerTimeoutMs,
      take: (socket, version) => this.#serve(socket, version),
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    // An error ends its own connection only, even before a server takes the socket or after it lets go.
    socket.on("error", () => socket.destroy());
    const { headerTimeoutMs } = this.#options.limits;
    if (this.#proxiesWithHeader?.has(this.#isUnix ? unixAddress : (socket.remoteAddress ?? "")) !== true)
      return this.#sniff(socket);
    takeProxyHeader(socket, headerTimeoutMs, (source) => {
      if (source !== undefined) this.#showSource(socket, source);
      this.#sniff(socket);
    });
  }

  #sniff(socket: Socket): void {
    sniff(socket, this.#options.limits.headerTimeoutMs, (protocol) => this.#handOver(socket, protocol));
  }

  #showSource(socket: Socket, source: Peer): void {
    if (this.#tls === undefined) showPeer(socket, source);
    else this.#sources.set(socket, source);
  }

  #handOver(socket: Socket, protocol: FirstProtocol): void {
    if (protocol === "tls" && this.#tls !== undefined) this.#decrypt(socket, this.#tls);
    else if (protocol !== "tls" && this.#cleartext) this.#serve(socket, protocol);
    else socket.destroy();
  }

  #decrypt(socket: Socket, tls: TlsServer): void {
    // On a Unix socket the connection inside TLS cannot be matched with the one around it.
    if (this.#isUnix) this.#sockets.served(socket, unknownInside);
    else this.#remember(socket);
    tls.accept(socket);
  }

  #remember(outer: Socket): void {
    const key = keyOf(outer);
    this.#outside.set(key, outer);
    outer.on("close", () => this.#outside.delete(key));
  }

  #serve(socket: Socket, version: HttpMajorVersion): void {
    const outer = this.#outside.get(keyOf(socket)) ?? socket;
    const source = this.#sources.get(outer);
    if (source !== undefined) showPeer(socket, source);
    else if (this.#isUnix && socket.remoteAddress === undefined) showPeer(socket, { address: unixAddress, port: 0 });
    // Reading the address once makes node keep it after the connection has closed.
    void socket.remoteAddress;
    const connection = this.#servers[version].take(socket);
    this.#sockets.served(outer, connection);
    this.#ages?.add(socket, connection);
  }

  async #closeGracefully(): Promise<void> {
    const closed = this.#net?.listening === true ? once(this.#net, "close") : undefined;
    this.#leavePort();
    for (const server of Object.values(this.#servers)) server.drain();
    await this.#quiet();
    for (const socket of this.#sockets) socket.destroy();
    for (const server of Object.values(this.#servers)) server.close();
    await closed;
    // Calls that were cut off report that before the caller goes on, perhaps to end the process.
    while (this.#isBusy()) await new Promise(setImmediate);
  }

  #leavePort(): void {
    this.#net?.close();
    this.#handed?.leave();
  }

  /** Resolves when all connections have closed, when all have been idle for {@link quietMs}, or at the deadline. */
  async #quiet(): Promise<void> {
    // Idle HTTP/1.1 connections stay open: a request may be on its way to one. Their next answer ends them.
    let quietSinceMs = performance.now();
    while (this.#sockets.size > 0 && performance.now() < this.#deadlineMs) {
      if (this.#isBusy()) quietSinceMs = performance.now();
      else if (performance.now() - quietSinceMs >= quietMs) break;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  #isBusy(): boolean {
    return this.#servers.http1.busy || this.#servers.http2.busy;
  }
}

function drained(): Error {
  return withCode(new Error("the gateway was drained and cannot listen again"), "ERR_OPTIONS");
}

// All four, because a proxy may use one port of its own for two addresses of ours.
function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function countOne<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

// On a Unix socket there are no addresses by which to find the connection around the one inside TLS.
const noSourceInTls = "proxyProtocol with tls requires a TCP port, not a Unix socket";

/** A connection that may or may not have a request, so it counts as having one. */
const unknownInside: TakenConnection = { busy: true };

const nobody: TrustedProxies = createTrustedProxies({ addresses: [] });

// Milliseconds without an open request after which idle connections are cut off: far above a round trip.
const quietMs = 1000;
const pollMs = 10;
