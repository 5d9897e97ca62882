/**
 * How does Node call a gRPC service? By a transport for Connect's clients, whose entry is `entry.ts`, or call by call, as
 * a proxy does.
 *
 * `create-grpc-transport.ts` makes a call of what a client asks for; a call (`outgoing-call.ts`) gets a stream from an
 * upstream, sends its messages and ends once.
 */
export { type CallSettings, type ClientCodec, ClientMethod } from "./client-method.ts";
export type { Abandonment, CallInit } from "./outgoing-call.ts";
export { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "./create-grpc-transport.ts";
export type { RequestFields } from "./request-fields.ts";
export { Retries, type RetryPolicy, retryPolicyNames } from "./retries.ts";
export { type StreamAnswer, StreamCall } from "./stream-call.ts";
export { UnaryCall } from "./unary-call.ts";
export {
  createUpstream,
  type Upstream,
  type UpstreamLimits,
  type UpstreamLoad,
  type UpstreamLookup,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
