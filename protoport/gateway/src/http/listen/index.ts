/**
 * Code that accepts connections on a port.
 *
 * A listener accepts connections, including TLS and the PROXY header, and detects HTTP/1.1 or HTTP/2. A server of the
 * {@link HttpEngine} creates exchanges from the requests. The code that all engines share is also here.
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
export { putBack } from "./first-bytes.ts";
export type { GatewayLoad, HttpConnection, HttpEngine, HttpServer, HttpServerOptions } from "./http-server.ts";
export { Listener, type ListenOptions } from "./listener.ts";
export { type OpenItem, OpenList } from "./open-list.ts";
export { peerOf } from "./peer.ts";
export { resetProblem } from "./reset-problem.ts";
export { TrackedHttpServer } from "./tracked-http-server.ts";
