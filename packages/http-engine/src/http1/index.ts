/**
 * HTTP/1.1 servers on plain sockets (RFC 9112), independent of RPC.
 *
 * chunk → Http1Connection → its receiver, and back as one write per response. This implementation exists because
 * node:http creates two streams with events for each request, which cost more than the rest of a call.
 */
export { Http1Connection, type Http1ConnectionOptions, type RequestReceiver } from "./http1-connection.ts";
export type { Http1RequestHead } from "./request-head.ts";
