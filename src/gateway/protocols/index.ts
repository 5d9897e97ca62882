/**
 * How is a call written?
 *
 * Connect, gRPC, gRPC-Web and REST each have a folder of the same shape: classes that read a call from its exchange and
 * answer it, and functions that refuse a request that never becomes one. Next to the folders is what they share:
 * codecs, compression, envelopes, headers. Knows nothing of who may call what.
 */
export { type AcceptItem, readAccept } from "./accept.ts";
export { messageTooLarge, type PieceDecompression, type PieceEncoder, type StreamCompression } from "./compression.ts";
export { createMethodCodecs } from "./codec.ts";
export { refuseConnectStream } from "./connect/connect-stream.ts";
export { refuseConnect } from "./connect/connect-unary.ts";
export { callerProtocol, type RpcContentType, readRpcContentType, rpcContentTypes } from "./content-type.ts";
export { refuseGrpc } from "./grpc/grpc-unary.ts";
export { refuseGrpcWeb } from "./grpc-web/grpc-web-unary.ts";
export { goneAway, httpError } from "./http-error.ts";
export { LazyHeaders } from "./lazy-headers.ts";
export type { MessageInit, Procedure, StreamProcedure, UnaryProcedure } from "./procedure.ts";
export type { CallProtocol, Protocol, RequestMessages, StreamProtocol, UnaryProtocol } from "./call-protocol.ts";
export type { RestStreamTarget } from "./rest/rest-stream.ts";
export { refuseRest } from "./rest/rest-unary.ts";
export {
  openStreamProtocol,
  openUnaryProtocol,
  type RpcTarget,
  type StreamTarget,
  type UnaryTarget,
} from "./target.ts";
