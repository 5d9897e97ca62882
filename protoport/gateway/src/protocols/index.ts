/**
 * The protocols for calls. Each protocol is a folder, and `protocols.ts` lists the protocols. No protocol depends on
 * authentication or authorization.
 */
export type {
  BodyCaller,
  BodyReply,
  BodyTarget,
  BodyWire,
  CallTarget,
  ErrorWire,
  Mismatch,
  Protocol,
  ProtocolParts,
  RequestHead,
  RequestMessages,
  StreamTraits,
  StreamWire,
  Wire,
} from "./protocol.ts";
export type { Codec, FormatName } from "./formats/format.ts";
export { createMethodCodecs, type MethodCodecs, takeEnvelopes, takeMessages } from "./formats.ts";
export { BodyCallWire, createBodyProtocol } from "./shared/body-protocol.ts";
export {
  messageTooLargeError,
  type PieceDecompression,
  type PieceEncoder,
  type StreamCompression,
} from "./envelope/compression.ts";
export {
  type Content,
  envelopeBytes,
  envelopePrefixBytes,
  Envelope,
  EnvelopeReader,
  fillEnvelope,
  type ForwardedMessage,
  isLargeEnvelope,
  messageBytesMax,
  readSingleEnvelope,
  type Take,
  toEnvelope,
  compressedFlag,
  writeEnvelope,
} from "./envelope/envelope.ts";
export { formatGrpcTimeout } from "./shared/format-grpc-timeout.ts";
export { normalizeContentType } from "./shared/content-type.ts";
export { metadataFields } from "./shared/error-metadata.ts";
export { clientGoneError, httpError } from "./http-error.ts";
export { LazyHeaders, toFields } from "./lazy-headers.ts";
export { type MessageSplitter, readMessages } from "./envelope/message-splitter.ts";
export { type AcceptItem, negotiateCoding, readAccept } from "./shared/negotiation.ts";
export { oneMessage } from "./shared/one-message.ts";
export { isOriginAllowed } from "./shared/origin.ts";
export { readRestTimeout } from "./shared/timeouts.ts";
export type { MessageInit, Rpc } from "./rpc.ts";
export type { ProtocolName } from "./protocol-name.ts";
export { createExtension, creatorOf, type ProtocolExtension, withoutTools } from "./extension.ts";
export { protocolForUnmatched, createProtocols, type Protocols } from "./protocols.ts";
export { JsonValueReader } from "./rest/json-value-reader.ts";
export { toRestHeader } from "./rest/response-header.ts";
export { createTarget } from "./target.ts";
export type {
  Callee,
  Caller,
  CallSignal,
  FaultReceiver,
  Forwarder,
  MessageCheck,
  Reply,
  ResponseParts,
} from "./callee.ts";
export {
  type Admit,
  type AdmitProcedure,
  type AdmitRequest,
  type CompletedRequest,
  type FailedRequest,
  type RequestView,
} from "./hooks.ts";
export * from "./rest/rules/index.ts";
