import type { Socket } from "node:net";

/** Connections beyond the limit: more than probes and an operator open at once, and some 2 MiB. */
const spareMax = 64;

/**
 * The open connections of a port. Up to the limit they are kept for as long as they like. Beyond it new ones are served
 * as well, since one may be a probe, whose orchestrator would end a server that is only full: for each that comes, the
 * one that has been beyond the limit for longest is closed.
 */
export class OpenConnections {
  readonly #limit: number;
  readonly #sockets = new Set<Socket>();
  /** Those beyond the limit, the oldest first. */
  readonly #spare = new Set<Socket>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many there are. */
  get size(): number {
    return this.#sockets.size;
  }

  [Symbol.iterator](): SetIterator<Socket> {
    return this.#sockets.values();
  }

  /** Takes a new connection, until it closes. */
  add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#remove(socket));
    if (this.#kept > this.#limit) this.#addSpare(socket);
  }

  get #kept(): number {
    return this.#sockets.size - this.#spare.size;
  }

  #addSpare(socket: Socket): void {
    this.#spare.add(socket);
    const [oldest] = this.#spare;
    if (this.#spare.size <= spareMax || oldest === undefined) return;
    this.#remove(oldest);
    oldest.destroy();
  }

  #remove(socket: Socket): void {
    this.#sockets.delete(socket);
    this.#spare.delete(socket);
    const [next] = this.#spare;
    if (next !== undefined && this.#kept < this.#limit) this.#spare.delete(next);
  }
}
