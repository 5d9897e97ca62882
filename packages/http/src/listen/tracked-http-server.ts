import type { Socket } from "node:net";
import type { HttpConnection, HttpServer } from "./http-server.ts";

/** An {@link HttpServer} that keeps its open connections in a set. */
export class TrackedHttpServer implements HttpServer {
  readonly #open: ReadonlySet<HttpConnection>;
  readonly #connect: (socket: Socket) => HttpConnection;
  readonly close: () => void;
  #isDraining = false;

  /** `connect` keeps a connection in `open` until the connection closes. `close` closes only the server. */
  constructor(open: ReadonlySet<HttpConnection>, connect: (socket: Socket) => HttpConnection, close: () => void) {
    this.#open = open;
    this.#connect = connect;
    this.close = close;
  }

  take(socket: Socket): HttpConnection {
    const connection = this.#connect(socket);
    // Drains a connection that was accepted before the drain began and has no request yet.
    if (this.#isDraining) connection.drain();
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
