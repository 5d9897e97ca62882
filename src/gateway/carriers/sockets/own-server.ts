import type { Socket } from "node:net";
import type { HttpServer, TakenConnection } from "./http-server.ts";

/** A connection of the gateway's own HTTP. */
export interface OwnConnection extends TakenConnection {
  /** Requests that are not answered yet, or whose answer is not sent yet. */
  readonly requests: number;
  /** Ends the connection once its requests are answered. */
  drain(): void;
}

/**
 * Creates a server on the gateway's own HTTP, of either version.
 *
 * @param open - its open connections, from which each removes itself when it closes
 * @param connect - creates the connection of a socket
 */
export function createOwnServer<Connection extends OwnConnection>(
  open: Set<Connection>,
  connect: (socket: Socket) => Connection,
  close: () => void,
): HttpServer {
  let draining = false;
  return {
    take(socket) {
      const connection = connect(socket);
      open.add(connection);
      // Accepted before the drain began, so it must be drained before its first request.
      if (draining) connection.drain();
      return connection;
    },
    drain() {
      draining = true;
      for (const connection of open) connection.drain();
    },
    get busy() {
      return [...open].some(({ busy }) => busy);
    },
    get connections() {
      return open.size;
    },
    get requests() {
      return [...open].reduce((sum, { requests }) => sum + requests, 0);
    },
    close,
  };
}
