/**
 * The gateway. Serves every RPC of your Connect routes over gRPC, gRPC-Web and Connect, and every RPC with a
 * `google.api.http` annotation also over REST. Runs in process, on one port, without a proxy.
 *
 * The module does not depend on authentication or logs. Routes, `admit` and endpoints are passed in as options.
 */
export {
  type ErrorBody,
  type ErrorForm,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type OnIgnored,
  type ExternalHttpRule,
  parseHttpRules,
  type PathTemplate,
  type RestFailure,
  type RestOptions,
  type RestProfile,
  type RestServiceOptions,
  type TemplateSegment,
  type TemplateVariable,
  type AcceptItem,
  negotiateCoding,
  type ProtocolName as Protocol,
  readAccept,
} from "./protocols/index.ts";
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
  type GatewayRoute,
  type OnFault,
  type ServingOptions,
} from "./serve/index.ts";
export { type BindOptions, type BoundAddress, type GatewayLoad, type ListenOptions } from "./engine/index.ts";
export { clientNetwork, isAddressOrNetwork, type TrustedProxiesOptions } from "./http/node-entry.ts";
export { visibleServices, type VisibilityOptions, errorCodeOf, optionOf } from "./protobuf/index.ts";
export { type NamedOption, type GatewayErrorCode, type HeaderReader, type Limits, type Peer } from "./http/index.ts";
export { connectNodeAdapter, createGateway, type Gateway, type GatewayOptions } from "./create-gateway.ts";
export type { FetchContext, FetchGateway, FetchHandler } from "./fetch/index.ts";
export type { NodeHandler, NodeServerResponse } from "./node-handler.ts";
