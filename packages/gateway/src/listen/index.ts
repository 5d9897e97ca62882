/**
 * Which connections are accepted on a port, and who serves each?
 *
 * A listener accepts connections, TLS and the PROXY header included, tells HTTP/1.1 from HTTP/2, and passes each to a
 * server of an {@link HttpEngine}, which turns its requests into exchanges. What all engines share is here too. This
 * module knows nothing of RPC.
 */
export { AwaitedBody } from "./awaited-body.ts";
export type { BindOptions, BoundAddress } from "./bind.ts";
export {
  type CheckedConnection,
  checkIntervalMs,
  type ConnectionClock,
  createConnectionClock,
} from "./connection-clock.ts";
export { dateFields } from "./date-fields.ts";
export type { GatewayLoad, HttpConnection, HttpEngine, HttpServer, HttpServerOptions } from "./http-server.ts";
export { shareConnections, type SharedPort } from "./share-connections.ts";
export { Listener, type ListenOptions } from "./listener.ts";
export { peerOf } from "./peer.ts";
export { resetProblem } from "./reset-problem.ts";
export { TrackedHttpServer } from "./tracked-http-server.ts";
