/**
 * What is one request and its answer?
 *
 * The {@link Exchange} is the seam between HTTP and RPC: carriers turn what a client sends into exchanges, and calls
 * answer them. What both sides need is here as well: lists of header fields, limits, and what can be wrong with a
 * request as HTTP. None of this knows sockets or RPC, and it runs wherever JavaScript does. The carriers themselves are
 * rooms of their own: `sockets/` on node, `web/` anywhere.
 */
export { type Backlog, BacklogBudget } from "./backlog.ts";
export { allocateBytes, concatBytes, toUtf8, unpooled } from "./bytes.ts";
export { CollectedBytes } from "./collected-bytes.ts";
export { freeBuffer, freeChunk, freedBytesMin, isSingleUse, markSingleUse } from "./free-memory.ts";
export {
  type AbortReceiver,
  type BodyReceiver,
  type Exchange,
  goneAway,
  type Peer,
  statusesWithoutBody,
} from "./exchange.ts";
export {
  CommonHeaderFields,
  type HeaderFields,
  type HeaderReader,
  isToken,
  PreparedHeaderFields,
  prepareHeaderFields,
  readHeaderField,
  requireField,
} from "./header-fields.ts";
export { defaultLimits, defaultReadMaxBytes, type Limits, unreadBodyBytesMax } from "./limits.ts";
export {
  authorityOf,
  headerTooLarge,
  type HttpProblem,
  httpProblem,
  readRequestTarget,
  urlTooLong,
} from "./request-target.ts";
export { afterTurn, type Interval, startDeadline, startInterval, timerMsMax } from "./timers.ts";
export { transferEncodingProblem } from "./transfer-encoding.ts";
