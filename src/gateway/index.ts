/**
 * The gateway: every RPC of your Connect routes over gRPC, gRPC-Web and Connect, and every RPC with a
 * `google.api.http` annotation as REST as well. In process, on one port, without a proxy.
 *
 * Knows nothing of plants, credentials or operations: those are handed in as routes, `admit` and endpoints.
 */
export {
  type Comments,
  createOpenApi,
  type OpenApiDocument,
  type OpenApiError,
  type OpenApiInfo,
  type OpenApiOptions,
  type OpenApiSchema,
  type OpenApiSecurityScheme,
  type OpenApiServer,
  readComments,
} from "./openapi/index.ts";
export {
  type CorsOptions,
  type ErrorRecord,
  type ErrorRecordPolicy,
  type OnIgnored,
  type OutsideHttpRule,
  parseHttpRules,
  type RestFailure,
} from "./rest/index.ts";
export type { Admit, AdmitRequest, HeaderReader, Peer, Protocol } from "./wire/admit.ts";
export { abortReasonOf } from "./wire/call-view.ts";
export { connectNodeAdapter } from "./wire/connect-node-adapter.ts";
export type { Endpoint, EndpointAnswer } from "./wire/endpoint.ts";
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type NodeHandler,
  type RestOptions,
} from "./wire/gateway.ts";
export type { Limits } from "./wire/limits.ts";
export type { ListenOptions } from "./wire/listener.ts";
export type { Answer } from "./wire/serve.ts";
