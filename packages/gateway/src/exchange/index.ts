/**
 * What is one request and its answer?
 *
 * The {@link Exchange} is the seam between HTTP and RPC: carriers turn what a client sends into exchanges, and calls
 * answer them. What both sides need is here as well: lists of header fields, limits, and what can be wrong with a
 * request as HTTP. None of this knows sockets or RPC, and it runs wherever JavaScript does. The carriers themselves are
 * rooms of their own: `sockets/` on node, `web/` anywhere.
 */
export { type Backlog, BacklogBudget } from "./backlog.ts";
export { allocateBuffer, allocateBytes, concatBytes, noBytes, toUtf8, unpooled } from "./bytes.ts";
export { CarriedExchange, type ExchangeHead } from "./carried-exchange.ts";
export { CollectedBytes } from "./collected-bytes.ts";
export { type AbortReceiver, type Exchange, type Peer, statusesWithoutBody } from "./exchange.ts";
export {
  type FieldKind,
  type FieldName,
  fieldNames,
  type FieldRule,
  notAdded,
  notForwarded,
  notFromHost,
  notInHttp2,
  notPrefixed,
  notSent,
  setByFetch,
  setByGrpcClient,
  setByHttp1,
} from "./field-kinds.ts";
export { freeBuffer, freeChunk, freedBytesMin, isSingleUse, markSingleUse } from "./free-memory.ts";
export {
  CommonHeaderFields,
  type HeaderFields,
  type HeaderReader,
  isToken,
  PreparedHeaderFields,
  prepareHeaderFields,
  readHeaderField,
  type RememberedFields,
  requireField,
  requireFields,
} from "./header-fields.ts";
export { type BodyMemory, ownPiece } from "./held-body.ts";
export {
  bodyWasRead,
  chunkExtensionsTooLarge,
  clientClosedRequest,
  clientGone,
  expectationProblem,
  headerTooLarge,
  HttpProblem,
  notHttp,
  timedOut,
  transferEncodingProblem,
  urlTooLong,
} from "./http-problem.ts";
export { ErrorCode, errorName, type ErrorScope } from "./http2-errors.ts";
export { isUtf8, type MediaType, parseMediaType } from "./media-type.ts";
export {
  defaultLimits,
  defaultReadMaxBytes,
  type Limits,
  lingerBytesMax,
  lingerMsMax,
  retiredIdleMs,
  unreadBodyBytesMax,
} from "./limits.ts";
export {
  announcesNothing,
  type BodyPlan,
  type BodyReceiver,
  type BodySource,
  type IncomingBody,
  planBody,
  RequestBody,
} from "./request-body.ts";
export { authorityOf, readRequestTarget } from "./request-target.ts";
export { afterTurn, type Interval, runInTurns, runSteps, startDeadline, startInterval, timerMsMax } from "./timers.ts";
