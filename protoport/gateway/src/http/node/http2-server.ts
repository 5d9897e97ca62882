import type { Socket } from "node:net";
import {
  checkIntervalMs,
  createConnectionClock,
  type HttpServer,
  type HttpServerOptions,
  TrackedHttpServer,
  putBack,
} from "../listen/index.ts";
import { NodeHttp2Connection } from "./http2-connection.ts";

/** Creates a server for HTTP/2 on node:http2. In a graceful shutdown, GOAWAY names the last processed stream. */
export function createNodeHttp2Server(options: HttpServerOptions): HttpServer {
  const { requestTimeoutMs, idleTimeoutMs } = options.limits;
  const connections = new Set<NodeHttp2Connection>();
  const clock = createConnectionClock(connections, checkIntervalMs(requestTimeoutMs, idleTimeoutMs));
  const connect = (socket: Socket, firstBytes: Buffer | undefined): NodeHttp2Connection => {
    if (firstBytes !== undefined) putBack(socket, firstBytes);
    clock.start();
    const connection = new NodeHttp2Connection(socket, options, (closed) => connections.delete(closed));
    connections.add(connection);
    return connection;
  };
  return new TrackedHttpServer(connections, connect, () => clock.stop());
}
