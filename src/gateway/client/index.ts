/**
 * How does Node call a gRPC service? A transport for Connect's clients over the gateway's own HTTP/2: the entry
 * `@plantstore/gateway/client`.
 *
 * `create-grpc-transport.ts` makes a call of what a client asks for; a call (`outgoing-call.ts`) gets a stream from an
 * upstream, sends its messages and ends once.
 */
export { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "./create-grpc-transport.ts";
export {
  createUpstream,
  type Upstream,
  type UpstreamLimits,
  type UpstreamLoad,
  type UpstreamLookup,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
