/**
 * An HTTP/2 engine for servers, on plain sockets: RFC 9113 and RFC 7541, and nothing of what is asked for.
 *
 * chunk → FrameReader → FrameRules → Http2Stream → its receiver, and back through Output: one write per
 * turn of the event loop for all streams that answered. It is there because node:http2 needs more for a call
 * than everything else together: objects and crossings into C++ for each stream.
 */
export { BodyPieces } from "./body-pieces.ts";
export { encodeBlock } from "./hpack/encoder.ts";
export { Http2Connection, type Http2ConnectionOptions } from "./http2-connection.ts";
export { ErrorCode } from "./http2-error.ts";
export { defaultHttp2Limits, type Http2Limits } from "./http2-limits.ts";
export { QueueBudget } from "./send-flow.ts";
export type { Http2Stream, StreamReceiver } from "./http2-stream.ts";
