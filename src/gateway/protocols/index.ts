/**
 * How is a call written?
 *
 * Connect, gRPC, gRPC-Web and REST each have classes that read a call from its exchange and answer it; target opens the
 * one that a request asks for, and refuse answers those that never become a call. Next to them is what they share:
 * codecs, compression, envelopes, headers. Knows nothing of who may call what.
 */
export type {
  CallTarget,
  Mismatch,
  Protocol,
  ProtocolName,
  Refusal,
  RequestHead,
  RequestMessages,
  StreamTarget,
  StreamWire,
  UnaryTarget,
  UnaryWire,
  Wire,
} from "./protocol.ts";
export { type Codec, createMethodCodecs, type MethodCodecs } from "./codec.ts";
export { messageTooLarge, type PieceDecompression, type PieceEncoder, type StreamCompression } from "./compression.ts";
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
export { spelledContentType } from "./content-type.ts";
export { goneAway, httpError } from "./http-error.ts";
export { LazyHeaders } from "./lazy-headers.ts";
export { type MessageSplitter, readMessages } from "./message-splitter.ts";
export { type AcceptItem, negotiateCoding, readAccept } from "./negotiation.ts";
export { oneMessage } from "./one-message.ts";
export type { MessageInit, Procedure, Reply, ResponseParts, StreamProcedure, UnaryProcedure } from "./procedure.ts";
export { claimedBy, createProtocols, type Protocols } from "./protocols.ts";
export { JsonValueReader } from "./rest/json-value-reader.ts";
