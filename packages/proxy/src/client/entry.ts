/**
 * The entry `@plantstore/proxy/client`: a transport for Connect's clients over the gateway's own HTTP/2.
 */
export { createGrpcTransport, type GrpcTransport, type GrpcTransportOptions } from "./create-grpc-transport.ts";
export type { RetryPolicy } from "./retries.ts";
export {
  createUpstream,
  type Upstream,
  type UpstreamLimits,
  type UpstreamLoad,
  type UpstreamLookup,
  type UpstreamOptions,
  type UpstreamTls,
} from "../upstreams/index.ts";
