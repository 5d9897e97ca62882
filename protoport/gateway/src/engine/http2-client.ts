/**
 * HTTP/2 clients on connected sockets, independent of RPC and of addresses.
 *
 * Exports all HTTP/2 code that a client needs, including header lists and limits.
 */
export { BacklogBudget } from "./backlog.ts";
export {
  type ClientStream,
  connectionLost,
  type ResponseReceiver,
  type ResponseSection,
  sectionTooLarge,
  serverUnresponsive,
} from "./http2/client-stream.ts";
export { defaultHttp2Limits, type Http2Limits } from "./http2/http2-limits.ts";
export { encodeVarying, listBytesOf, StableFields } from "./http2/hpack/encoder.ts";
export { ClientConnection } from "./http2/client-connection.ts";
