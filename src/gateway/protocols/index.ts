/**
 * How is a call written?
 *
 * Connect, gRPC, gRPC-Web and REST each have classes that read a call from its exchange and answer it; target opens the
 * one that a request asks for, and refuse answers those that never become a call. Next to them is what they share:
 * codecs, compression, envelopes, headers. Knows nothing of who may call what.
 */
export type { CallProtocol, Protocol, RequestMessages, StreamProtocol, UnaryProtocol } from "./call-protocol.ts";
export { type Codec, createMethodCodecs, type MethodCodecs } from "./codec.ts";
export { messageTooLarge, type PieceDecompression, type PieceEncoder, type StreamCompression } from "./compression.ts";
export { callerProtocol } from "./content-type.ts";
export {
  envelopeAround,
  envelopeBytes,
  envelopePrefixBytes,
  type Envelope,
  EnvelopeReader,
  messageBytesMax,
  readSingleEnvelope,
  compressedFlag,
  writeEnvelope,
} from "./envelope.ts";
export { toGrpcTimeout } from "./grpc-timeout.ts";
export { goneAway, httpError } from "./http-error.ts";
export { LazyHeaders } from "./lazy-headers.ts";
export { type MessageSplitter, readMessages } from "./message-splitter.ts";
export { type AcceptItem, negotiateCoding, readAccept } from "./negotiation.ts";
export { oneMessage } from "./one-message.ts";
export type { MessageInit, Procedure, StreamProcedure, UnaryProcedure } from "./procedure.ts";
export { type Refusal, writeRefusal } from "./refuse.ts";
export { JsonValueReader } from "./rest/json-value-reader.ts";
export {
  createRpcTargets,
  findGetTarget,
  findRpcTarget,
  openStreamProtocol,
  openUnaryProtocol,
  type RpcTargets,
  type StreamTarget,
  type UnaryTarget,
} from "./target.ts";
