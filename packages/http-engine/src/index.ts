/**
 * HTTP/1.1 and HTTP/2 on plain sockets, several times as fast as node:http2 and stricter than node:http.
 *
 * The modules `http1/` and `http2/` read requests, and this package converts each request to an exchange of the
 * gateway. The package is independent of RPC. An application passes the engine to `createGateway`.
 */
export { createHttpEngine } from "./create-http-engine.ts";
