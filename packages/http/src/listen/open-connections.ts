import type { Socket } from "node:net";
import type { ServedConnection } from "./http-server.ts";

/** Connections that are served beyond the limit: enough for probes and an operator, and about 2 MiB. */
const spareMax = 64;

/**
 * A port's open connections. Up to the limit all are kept. Beyond the limit, {@link spareMax} more are served, because
 * one may be a probe. If the probe failed, the orchestrator would restart a server that is merely full. After that,
 * each new one closes the oldest connection beyond the limit that has no request. A connection with a request is not
 * closed, because its client would not learn what the handler has already done.
 */
export class OpenConnections {
  readonly #limit: number;
  readonly #sockets = new Set<Socket>();
  /** The connections beyond the limit, the oldest first, each with the connection object that serves it, if known. */
  readonly #beyondLimit = new Map<Socket, ServedConnection | undefined>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#sockets.size;
  }

  [Symbol.iterator](): SetIterator<Socket> {
    return this.#sockets.values();
  }

  /** Counts a new connection until it closes. */
  add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#remove(socket));
    if (this.#keptConnections > this.#limit) this.#addSpare(socket);
  }

  /** Records what serves a connection. */
  served(socket: Socket, connection: ServedConnection): void {
    if (this.#beyondLimit.has(socket)) this.#beyondLimit.set(socket, connection);
  }

  get #keptConnections(): number {
    return this.#sockets.size - this.#beyondLimit.size;
  }

  #addSpare(socket: Socket): void {
    this.#beyondLimit.set(socket, undefined);
    if (this.#beyondLimit.size > spareMax) this.#closeOldest();
  }

  /**
   * Closes the oldest spare connection without a request. There is always one, because the newest has no request yet.
   */
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
