/**
 * HTTP/1.1 and HTTP/2 on plain sockets, several times as fast as node:http2 and stricter than node:http.
 *
 * Converts each request that `http1/` and `http2/` read to an exchange of the gateway. Independent of RPC. An
 * application passes the engine to `createGateway`.
 */
export { createHttpEngine } from "./create-http-engine.ts";
