/**
 * The client's side of HTTP/2, on connected sockets. Independent of RPC and of addresses.
 *
 * Exports everything that a client needs of HTTP/2, including header lists and limits.
 */
export type { ResponseSection } from "./response-section.ts";
export { defaultHttp2Limits, encodeVarying, type Http2Limits, listBytesOf, StableFields } from "../http2/index.ts";
export { ClientConnection } from "./client-connection.ts";
export {
  type ResponseReceiver,
  type ClientStream,
  connectionLost,
  sectionTooLarge,
  serverFrozen,
} from "./client-stream.ts";
