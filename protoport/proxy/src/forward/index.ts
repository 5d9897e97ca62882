/**
 * How is a call forwarded to its upstream? `proxied-upstream.ts` registers each RPC in the descriptors.
 * `forward-call.ts` forwards each call, with the fields that `forward-rules.ts` allows.
 *
 * The module does not depend on sockets or on the callers' protocols.
 */
export type { DescriptorSource, ServiceDescriptors, UpstreamDescriptors } from "./descriptors.ts";
export { DescriptorReader, isUnreachable, readAll, type ReadDescriptors, toError } from "./descriptor-reader.ts";
export { UnknownPaths } from "./unknown-paths.ts";
export type { CallEnd, RetryPolicy } from "../client/index.ts";
export type { ForwardRules } from "./forward-rules.ts";
export { type LocalTypes, localTypesOf } from "./local-types.ts";
export type { VisibilityOptions } from "@protoport/gateway/descriptors";
export { guardObserver, type UpstreamCall, type UpstreamCallObserver } from "./observe-calls.ts";
export {
  type MethodSettings,
  ProxiedUpstream,
  type ProxiedUpstreamOptions,
  proxiedUpstreamOptionNames,
  typesOf,
} from "./proxied-upstream.ts";
export type { DescriptorReload, ReloadReport } from "./reload-report.ts";
export { assignServices } from "./assign-services.ts";
export { findRouteClashes, type RouteClaims } from "./route-clashes.ts";
export { unknownServiceError } from "./upstream-errors.ts";
