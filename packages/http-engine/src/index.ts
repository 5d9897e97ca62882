/**
 * HTTP/1.1 and HTTP/2 on plain sockets, several times as fast as node:http2 and stricter than node:http.
 *
 * Turns each request that `http1/` and `http2/` read into an exchange: header in, body in, response out. Knows nothing
 * of RPC, and the gateway knows nothing of it: a program passes it to `createGateway`.
 */
export { createHttpEngine } from "./create-http-engine.ts";
