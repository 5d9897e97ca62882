/**
 * The entry `@plantstore/gateway/fetch`: the gateway for Deno, Bun, workers, and frameworks that pass on a `Request`.
 *
 * The entry serves REST, Connect and gRPC-Web, and uses no node modules.
 */
export {
  type Admit,
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
export { errorCodeOf, type GatewayErrorCode } from "../errors/index.ts";
export type { HeaderReader, Limits, Peer } from "../exchange/index.ts";
export type { ProtocolName as Protocol } from "../protocols/index.ts";
export {
  type ErrorForm,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type OnIgnored,
  type ExternalHttpRule,
  parseHttpRules,
  type RestFailure,
  type RestOptions,
  type RestProfile,
} from "../protocols/rest/rules/index.ts";
export { createFetchGateway, type FetchGateway } from "./create-fetch-gateway.ts";
export type { FetchContext, FetchHandler } from "./fetch-handler.ts";
