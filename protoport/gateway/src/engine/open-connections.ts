import type { Socket } from "node:net";
import type { ServedConnection } from "./http-server.ts";
import { type OpenItem, OpenList } from "./open-list.ts";

/** Maximum connections beyond the limit. 64 are enough for probes and an operator, and take about 2 MiB. */
const spareMax = 64;

/**
 * The open connections on a port. Connections up to the limit are never closed in favour of new connections.
 * {@link spareMax} more are served, because an orchestrator would restart a full server if its probes failed. Each
 * further connection closes the oldest one beyond the limit that has no request. A connection with a request stays
 * open, because its client could not know whether the handler has run.
 */
export class OpenConnections {
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
    if (this.#beyondLimit.size > spareMax) this.#closeOldest();
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
