/**
 * How does Node call a gRPC service? Connect's clients use a transport, which `entry.ts` exports. The proxy starts
 * single calls.
 *
 * `create-grpc-transport.ts` starts a call for each client request. A call (`outgoing-call.ts`) gets a stream from an
 * upstream, sends its messages and completes once.
 */
export { type CallSettings, messageEncodingError, ClientMethod } from "./client-method.ts";
export type { CallEnd, CallInit } from "./outgoing-call.ts";
export { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "./create-grpc-transport.ts";
export type { RequestFields } from "./request-fields.ts";
export { Retries, type RetryPolicy, retryPolicyNames } from "./retries.ts";
export { OutgoingStream } from "./stream-call.ts";
export { OutgoingUnary } from "./unary-call.ts";
export {
  createUpstream,
  type Upstream,
  type UpstreamLimits,
  type UpstreamLoad,
  type UpstreamLookup,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
