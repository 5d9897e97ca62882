import type { Socket } from "node:net";
import type { HttpConnection, HttpServer } from "./http-server.ts";
import type { OpenItems } from "./open-list.ts";

/** An {@link HttpServer} that keeps a collection of its open connections. */
export class TrackedHttpServer implements HttpServer {
  readonly #open: OpenItems<HttpConnection>;
  readonly #connect: (socket: Socket, firstBytes: Buffer | undefined) => HttpConnection;
  readonly close: () => void;
  #isDraining = false;

  /** `connect` keeps a connection in `open` until the connection closes. `close` closes only the server. */
  constructor(
    open: OpenItems<HttpConnection>,
    connect: (socket: Socket, firstBytes: Buffer | undefined) => HttpConnection,
    close: () => void,
  ) {
    this.#open = open;
    this.#connect = connect;
    this.close = close;
  }

  take(socket: Socket, firstBytes?: Buffer): HttpConnection {
    const connection = this.#connect(socket, firstBytes);
    // Drains a connection that was accepted before the drain began and has no request yet.
    if (this.#isDraining) connection.drain();
    if (firstBytes !== undefined) connection.receive?.(firstBytes);
    return connection;
  }

  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#open) connection.drain();
  }

  get busy(): boolean {
    return [...this.#open].some(({ busy }) => busy);
  }

  get connections(): number {
    return this.#open.size;
  }

  get requests(): number {
    return [...this.#open].reduce((sum, { requests }) => sum + requests, 0);
  }
}
