/**
 * Which server takes this call? The connections to one address: opened when a call needs one, and again after a loss,
 * with gRPC's back-off. Knows nothing of messages.
 */
export { type UpstreamTls } from "./open-socket.ts";
export { type Caller, Upstream } from "./upstream.ts";
export { readUpstreamAddress } from "./upstream-address.ts";
export { defaultKeepaliveMs, upstreamLimits } from "./upstream-limits.ts";
