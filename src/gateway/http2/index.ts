/**
 * HTTP/2 for servers on plain sockets: RFC 9113 and RFC 7541. Knows nothing of RPC.
 *
 * chunk → FrameReader → FrameRules → Http2Stream → its receiver, and back through Output: one write per turn of the
 * event loop for all streams that answered. It exists because node:http2 makes objects and crosses into C++ for each
 * stream, which costs more than the rest of a call.
 */
export { encodeBlock, encodeStatus } from "./hpack/encoder.ts";
export type { ErrorScope } from "./connection.ts";
export { Http2Connection } from "./http2-connection.ts";
export { ErrorCode, errorName } from "./http2-error.ts";
export { defaultHttp2Limits, type Http2Limits } from "./http2-limits.ts";
export type { Http2Stream, StreamReceiver } from "./http2-stream.ts";
export type { Http2RequestHead } from "./request-head.ts";
