/**
 * Which server gets this call? Connections are opened when calls need them, and reopened after a loss with gRPC's
 * backoff. The module does not depend on messages, except for health checks.
 *
 * An `Upstream` has an `UpstreamServer` for each address of its `AddressResolver`, and each server has an
 * `UpstreamConnection` for each socket. Calls that find no free stream are queued in the upstream until any server has
 * a free stream.
 */
export { ConnectBackoff } from "./connect-backoff.ts";
export { TlsFilesError, type UpstreamTls } from "./open-socket.ts";
export {
  isProtocolField,
  isSettable,
  requireRange,
  type UpstreamLookup,
  upstreamOptionNames,
  type UpstreamOptions,
} from "./upstream-options.ts";
export type { PendingCall, RefusalReason } from "./call-queue.ts";
export { createUpstream, Upstream, type UpstreamLoad } from "./upstream.ts";
export { defaultRestTimeoutMs, type UpstreamLimits, upstreamLimits } from "./upstream-limits.ts";
export { findPatternProblems, type PatternProblem, ServiceOwners } from "./service-owners.ts";
