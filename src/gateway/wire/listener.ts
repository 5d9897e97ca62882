import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { SecureContextOptions, Server as TlsServer, TlsOptions } from "node:tls";
import { drain } from "./drain.ts";
import type { Limits } from "./limits.ts";
import { ProtocolServers, type ProtocolServersOptions } from "./protocol-servers.ts";
import { sniff, type Spoken } from "./sniff.ts";
import { createTlsServer } from "./tls-server.ts";

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
export interface ListenerOptions extends ProtocolServersOptions {
  readonly limits: Limits;
}

/** Makes a listener that hands each connection to the server of its protocol. */
export function createListener(options: ListenerOptions): Listener {
  return new PortListener(options);
}

class PortListener implements Listener {
  readonly #limits: Limits;
  readonly #servers: ProtocolServers;
  readonly #sockets = new Set<Socket>();
  #net: Server | undefined;
  #tls: TlsServer | undefined;
  #cleartext = true;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #drained: Promise<void> | undefined;

  constructor(options: ListenerOptions) {
    this.#limits = options.limits;
    this.#servers = new ProtocolServers(options);
  }

  get draining(): boolean {
    return this.#drained !== undefined;
  }

  async listen(options: ListenOptions): Promise<{ readonly address: string; readonly port: number }> {
    if (this.#net !== undefined) throw new Error("the gateway is listening already");
    if (options.http2 === "node") this.#servers.useNodeHttp2();
    this.#tls = options.tls === undefined ? undefined : this.#openTls(options.tls);
    this.#cleartext = options.tls === undefined || options.allowCleartext === true;
    // Half-open: a client that has ended its side may still be owed an answer. On HTTP/2 what it asked for; on
    // HTTP/1.1, where node takes it to be gone, that its request was cut short.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    server.maxConnections = this.#limits.connections;
    const { host = "127.0.0.1", port = 0, reusePort = false } = options;
    server.listen({ host, port, reusePort });
    await once(server, "listening");
    this.#net = server;
    const bound = server.address() as AddressInfo;
    return { address: bound.address, port: bound.port };
  }

  setSecureContext(context: SecureContextOptions): void {
    this.#tls?.setSecureContext(context);
  }

  drain(timeoutMs: number): Promise<void> {
    // A second call can only hurry the first one up.
    this.#deadlineMs = Math.min(this.#deadlineMs, Date.now() + timeoutMs);
    return (this.#drained ??= this.#closeGracefully());
  }

  #openTls(tls: TlsOptions): TlsServer {
    return createTlsServer({
      tls,
      // A handshake comes before the header, so it has no more time than that.
      handshakeTimeoutMs: this.#limits.headerTimeoutMs,
      take: (socket, protocol) => this.#servers.take(socket, protocol),
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // Until a server has it, and after it let go: an error of a connection is the end of that connection.
    socket.on("error", () => socket.destroy());
    sniff(socket, this.#limits.headerTimeoutMs, (spoken) => this.#hand(socket, spoken));
  }

  #hand(socket: Socket, spoken: Spoken): void {
    if (spoken === "tls" && this.#tls !== undefined) this.#tls.emit("connection", socket);
    else if (spoken !== "tls" && this.#cleartext) this.#servers.take(socket, spoken);
    else socket.destroy();
  }

  async #closeGracefully(): Promise<void> {
    const closed = this.#net?.listening === true ? once(this.#net, "close") : undefined;
    this.#net?.close();
    await drain({ sockets: this.#sockets, servers: this.#servers, deadlineMs: () => this.#deadlineMs });
    await closed;
    // The calls that were cut learn of it, and are told of, before whoever drains goes on to end the process.
    while (this.#servers.busy) await new Promise(setImmediate);
  }
}
