/**
 * Which server gets this call? Connections to servers, opened when calls need them, and again after a loss with gRPC's
 * backoff. Independent of messages, except for health checks.
 *
 * An `Upstream` has an `UpstreamServer` for each address of its `AddressResolver`, which has an `UpstreamConnection` for each
 * socket. Calls that find no free stream are queued in the upstream, for the first server that has one.
 */
export { ConnectBackoff } from "./connect-backoff.ts";
export { type UpstreamTls } from "./open-socket.ts";
export { requireRange } from "./require-range.ts";
export type { PendingCall, RefusalReason } from "./call-queue.ts";
export { createUpstream, Upstream, type UpstreamLoad } from "./upstream.ts";
export type { UpstreamLimits } from "./upstream-limits.ts";
export type { UpstreamLookup, UpstreamOptions } from "./upstream-options.ts";
