/**
 * HTTP/2 on plain sockets (RFC 9113, RFC 7541), independent of RPC.
 *
 * Each chunk goes through FrameReader, FrameHandler and Http2Stream to the stream's receiver. Output sends the
 * responses on all streams in one write per event-loop turn. Used instead of node:http2, whose objects and calls to C++
 * for each stream take more CPU time than the rest of a call.
 *
 * Contains HTTP/2 servers and the code that servers and clients share. HTTP/2 clients are in `../http2-client/`.
 */
export { type ConnectionOptions, FrameConnection } from "./connection.ts";
export { type DeadlineCallbacks, Http2Deadlines, type Handshake } from "./http2-deadlines.ts";
export { colon, isRegularField } from "./field-rules.ts";
export { connectionPreface, FrameFlag } from "./frame-numbers.ts";
export { type ConnectionParts, type FrameCallbacks, FrameHandler } from "./frame-handler.ts";
export type { HeaderBlock } from "./header-blocks.ts";
export { BlockEncoder, encodeVarying, listBytesOf, StableFields } from "./hpack/block-encoder.ts";
export { encodeBlock, encodeStatus } from "./hpack/encoder.ts";
export { Http2Connection } from "./http2-connection.ts";
export { ConnectionError, protocolError } from "./http2-error.ts";
export { defaultHttp2Limits, type Http2Limits } from "./http2-limits.ts";
export type { Http2Stream, StreamReceiver } from "./http2-stream.ts";
export type { Http2RequestHead } from "./request-head.ts";
export { encodeClientSettings, PeerSettings } from "./settings.ts";
export { type FlowConnection, type FlowReceiver, StreamFlow } from "./stream-flow.ts";
