/** The entry `@protoport/proxy/client`: a gRPC transport for Connect's clients. */
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
