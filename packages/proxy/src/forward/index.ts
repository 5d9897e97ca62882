/**
 * How does a call go on to its upstream? `proxied-upstream.ts` registers a handler for each RPC that its descriptors
 * name; `forward-call.ts` makes a call of each call, with the fields that `forward-rules.ts` lets pass. Messages of
 * binary protocols stay bytes (`opaque-message.ts`).
 *
 * Knows nothing of sockets, nor of how callers speak.
 */
export type { DescriptorSource, Described } from "./descriptors.ts";
export type { RetryPolicy } from "../client/index.ts";
export type { ForwardRules } from "./forward-rules.ts";
export { createServerCodecs, OpaqueMessage } from "./opaque-message.ts";
export { OpenUpstream, type ProxiedUpstream, proxiedUpstreamNames, typesOf } from "./proxied-upstream.ts";
export { type DescriptorReload, ProxyTable, type ReloadReport } from "./proxy-table.ts";
export { unknownService } from "./upstream-errors.ts";
