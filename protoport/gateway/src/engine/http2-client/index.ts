/**
 * HTTP/2 clients on connected sockets, independent of RPC and of addresses.
 *
 * Exports all HTTP/2 code that a client needs, including header lists and limits.
 */
export { BacklogBudget } from "../backlog.ts";
export type { ResponseSection } from "./response-section.ts";
export { defaultHttp2Limits, encodeVarying, type Http2Limits, listBytesOf, StableFields } from "../http2/index.ts";
export { ClientConnection } from "./client-connection.ts";
export {
  type ResponseReceiver,
  type ClientStream,
  connectionLost,
  sectionTooLarge,
  serverUnresponsive,
} from "./client-stream.ts";
