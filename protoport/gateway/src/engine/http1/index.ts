/**
 * HTTP/1.1 servers on plain sockets (RFC 9112), independent of RPC.
 *
 * Each chunk goes from the socket to Http1Connection and to its receiver. Each response is one write to the socket.
 * Used instead of node:http, whose two streams per request take more CPU time than the rest of a call.
 */
export { Http1Connection, type Http1ConnectionOptions, type RequestReceiver } from "./http1-connection.ts";
export { keepAliveLines } from "./response-head.ts";
export type { Http1RequestHead } from "./request-head.ts";
