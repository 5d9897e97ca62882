import type { Server as Http1Server } from "node:http";
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { EngineServer } from "./engine-server.ts";
import { exchangeOn } from "./http1-exchange.ts";
import { exchangesOf } from "./http2-exchange.ts";

/** What a connection speaks, once TLS is off it. */
export type HttpProtocol = "http1" | "http2";

/** What {@link ProtocolServers} hands connections to. */
export interface ProtocolServersOptions {
  readonly http1: Http1Server;
  /** Makes the server that node:http2 has, for who listens with it. */
  readonly http2: () => Http2Server;
  readonly engine: EngineServer;
}

/** The servers behind a port: each connection goes to the one of its protocol, and together they are busy or quiet. */
export class ProtocolServers {
  readonly #options: ProtocolServersOptions;
  readonly #http1Sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #http2: Http2Server | undefined;

  constructor(options: ProtocolServersOptions) {
    this.#options = options;
  }

  /** From now on HTTP/2 is served by node:http2 in place of the gateway's own engine. */
  useNodeHttp2(): void {
    this.#http2 = this.#options.http2().on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
  }

  /** Hands a connection, of which nothing is read or all that was read is put back, to the server of its protocol. */
  take(socket: Socket, protocol: HttpProtocol): void {
    // Asked for once, the address is still known when the connection has closed and its calls are told of.
    void socket.remoteAddress;
    if (protocol === "http2") return this.#takeHttp2(socket);
    this.#http1Sockets.add(socket);
    socket.on("close", () => this.#http1Sockets.delete(socket));
    this.#options.http1.emit("connection", socket);
  }

  #takeHttp2(socket: Socket): void {
    if (this.#http2 === undefined) return this.#options.engine.take(socket);
    // To node:http2 a client that has ended its side is gone; half open, nobody would ever close the connection.
    socket.allowHalfOpen = false;
    this.#http2.emit("connection", socket);
  }

  /** Whether a request of any connection is still owed its answer. */
  get busy(): boolean {
    return (
      this.#options.engine.busy ||
      [...this.#sessions].some((session) => exchangesOf(session).size > 0) ||
      [...this.#http1Sockets].some((socket) => exchangeOn(socket) !== undefined)
    );
  }

  /** Sends GOAWAY (RFC 9113 §6.8): streams that are open run to their end, new ones are not taken. */
  goAway(): void {
    for (const session of this.#sessions) session.close();
    this.#options.engine.drain();
  }

  /** Ends the servers themselves. Connections are ended by who accepted them. */
  close(): void {
    this.#options.http1.close();
    this.#http2?.close();
  }
}
