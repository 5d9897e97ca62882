/**
 * Which server takes this call? The connections to some servers: opened when calls need them, and again after a loss,
 * with gRPC's back-off. Knows nothing of messages, but for the health that it may ask servers for.
 *
 * An `Upstream` keeps an `UpstreamServer` for each address of its `AddressBook`, and that an `UpstreamConnection` for each
 * socket. Calls that find no room wait in the upstream, for whichever server has some first.
 */
export { ConnectBackoff } from "./connect-backoff.ts";
export { type UpstreamTls } from "./open-socket.ts";
export { requireRange } from "./require-range.ts";
export type { Caller, RefusalReason } from "./call-queue.ts";
export { createUpstream, Upstream, type UpstreamLoad } from "./upstream.ts";
export type { UpstreamLimits } from "./upstream-limits.ts";
export type { UpstreamLookup, UpstreamOptions } from "./upstream-options.ts";
