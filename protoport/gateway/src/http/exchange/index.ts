/**
 * One HTTP request and its response.
 *
 * The {@link Exchange} is the interface between HTTP and RPC. HTTP implementations create exchanges from requests, and
 * calls respond to exchanges. This module also has header field lists, limits and HTTP problems, which both sides need.
 * The module is independent of sockets and RPC, and runs on every JavaScript platform. The HTTP implementations are in
 * other modules: `gateway/engine/` for sockets, `node/` for node:http and node:http2, and `fetch/` for Fetch.
 */
export { allocateBuffer, allocateBytes, CollectedBytes, concatBytes, copyIfPooled, noBytes, toUtf8 } from "./bytes.ts";
export {
  type AbortReceiver,
  BaseExchange,
  type Exchange,
  type ExchangeHead,
  type Peer,
  statusesWithoutBody,
} from "./exchange.ts";
export {
  type FieldKind,
  type FieldName,
  fieldNames,
  type FieldRule,
  reservedResponseFields,
  fieldsNotForwarded,
  fieldsNotCopiedFromFramework,
  connectionSpecificFields,
  fieldsNotSetByGrpcMetadata,
  fieldsNotSentAsMetadata,
  fieldsSetByFetch,
  fieldsSetByGrpcClient,
  fieldsSetByHttp1,
} from "./field-kinds.ts";
export { withCode } from "../problems.ts";
export { freeBuffer, freeChunk, minFreedBytes, isSingleUse, markSingleUse } from "./free-memory.ts";
export {
  CommonHeaderFields,
  type HeaderFields,
  type HeaderReader,
  isToken,
  PreparedHeaderFields,
  prepareHeaderFields,
  readHeaderField,
  type CachedFields,
  requireField,
  requireFields,
  tokenPattern,
} from "./header-fields.ts";
export { type BodyMemory, detachFromChunk } from "./buffered-body.ts";
export {
  bodyConsumedProblem,
  clientClosedRequest,
  clientGoneProblem,
  headerTooLargeProblem,
  HttpProblem,
  transferEncodingProblem,
  urlTooLongProblem,
} from "./http-problem.ts";
export { ErrorCode, errorName, type ErrorScope, resetProblem } from "./http2-errors.ts";
export { isUtf8, type MediaType, parseMediaType } from "./media-type.ts";
export {
  defaultLimits,
  defaultReadMaxBytes,
  type Limits,
  maxLingerBytes,
  maxLingerMs,
  maxUnreadBodyBytes,
  withDefaultLimits,
} from "./limits.ts";
export {
  noAnnouncedLength,
  type BodyPlan,
  type BodyReceiver,
  type BodySource,
  type IncomingBody,
  planBody,
  RequestBody,
} from "./request-body.ts";
export { reasonPhraseOf } from "./reason-phrases.ts";
export { authorityOf, checkRequestHead } from "./check-request-head.ts";
export {
  runAfterTurn,
  type Interval,
  runInTurns,
  runSteps,
  runLater,
  startDeadline,
  startInterval,
  maxTimerMs,
} from "./timers.ts";
