/**
 * The protocols for calls. Each protocol is a folder, and `protocols.ts` lists the protocols. No protocol depends on
 * authentication or authorization.
 */
export {
  type BodyCaller,
  type BodyReply,
  type BodyTarget,
  type BodyWire,
  type CallTarget,
  createTarget,
  type ErrorWire,
  type Mismatch,
  type Protocol,
  type ProtocolParts,
  type RequestHead,
  type RequestMessages,
  type StreamTraits,
  type StreamWire,
  type Wire,
} from "./protocol.ts";
export {
  type Codec,
  createMethodCodecs,
  type FormatName,
  type MethodCodecs,
  takeEnvelopes,
  takeMessages,
} from "./formats.ts";
export { BodyCallWire, createBodyProtocol, isOriginAllowed, oneMessage } from "./shared/body-protocol.ts";
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
  maxMessageBytes,
  readSingleEnvelope,
  type Take,
  toEnvelope,
  compressedFlag,
  writeEnvelope,
} from "./envelope/envelope.ts";
export { formatGrpcTimeout, readRestTimeout } from "./shared/timeouts.ts";
export { normalizeContentType } from "./shared/content-type.ts";
export { metadataFields } from "./shared/error-metadata.ts";
export { clientGoneError, httpError } from "./http-error.ts";
export { LazyHeaders, toFields } from "./lazy-headers.ts";
export { type MessageSplitter, readMessages } from "./envelope/message-splitter.ts";
export { type AcceptItem, negotiateCoding, readAccept } from "./shared/negotiation.ts";
export type {
  Callee,
  Caller,
  CallSignal,
  FaultReceiver,
  Forwarder,
  MessageCheck,
  MessageInit,
  Reply,
  ResponseParts,
  Rpc,
} from "./rpc.ts";
export type {
  Admit,
  AdmitProcedure,
  AdmitRequest,
  CompletedRequest,
  FailedRequest,
  ProtocolName,
  RequestView,
} from "./hooks.ts";
export {
  createExtension,
  createProtocols,
  creatorOf,
  type ProtocolExtension,
  protocolForUnmatched,
  type Protocols,
  withoutTools,
} from "./protocols.ts";
export { JsonValueReader } from "./rest/json-value-reader.ts";
export { toRestHeader } from "./rest/response-header.ts";
export * from "./rest/rules/index.ts";
