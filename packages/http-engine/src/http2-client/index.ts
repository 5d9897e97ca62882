/**
 * Which answer belongs to this request? The client's side of HTTP/2, on what both sides share. Knows nothing of RPC, nor
 * of addresses: it is given sockets that are connected.
 *
 * All that a client needs of HTTP/2 is exported here: its header lists and limits too.
 */
export type { ResponseSection } from "./response-section.ts";
export { defaultHttp2Limits, encodeVarying, type Http2Limits, StableFields } from "../http2/index.ts";
export { ClientConnection } from "./client-connection.ts";
export { type ResponseReceiver, type ClientStream, connectionLost } from "./client-stream.ts";
