/**
 * The entry `@protoport/gateway/fetch`, a gateway for Deno, Bun, workers, and frameworks that pass on a `Request`.
 *
 * The entry serves REST, Connect and gRPC-Web, and uses no node modules.
 */
export {
  type Admit,
  type AdmitProcedure,
  type AdmitRequest,
  type CompletedRequest,
  type CorsOptions,
  type Endpoint,
  type EndpointResponse,
  type EndpointRequest,
  type FailedRequest,
  type OnFault,
  type ServingOptions,
} from "../serve/index.ts";
export { errorCodeOf } from "../protobuf/index.ts";
export { type GatewayErrorCode, type HeaderReader, type Limits, type Peer } from "../http/index.ts";
export {
  type ProtocolName as Protocol,
  type ErrorBody,
  type ErrorForm,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type OnIgnored,
  type ExternalHttpRule,
  parseHttpRules,
  type RestFailure,
  type RestOptions,
  type RestProfile,
} from "../protocols/index.ts";
export { createFetchGateway, type FetchGateway } from "./create-fetch-gateway.ts";
export type { FetchContext, FetchHandler } from "./fetch-handler.ts";
