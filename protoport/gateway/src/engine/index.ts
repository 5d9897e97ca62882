/**
 * From the socket to the exchange: HTTP/1.0, HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113, RFC 7541) on plain sockets.
 *
 * A {@link Listener} accepts connections, including TLS and the PROXY header, and detects the HTTP version. Its two
 * servers create exchanges from the requests.
 */
export type { BindOptions, BoundAddress } from "./bind.ts";
export type { GatewayLoad } from "./http-server.ts";
export { Listener, type ListenOptions } from "./listener.ts";
