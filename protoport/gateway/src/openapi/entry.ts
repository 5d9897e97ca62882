/** The entry `@protoport/gateway/openapi`, which describes a definition without a server. */
export {
  type Comments,
  createOpenApi,
  createOpenApiAsync,
  type OpenApiDocument,
  type OpenApiError,
  type OpenApiInfo,
  type OpenApiOptions,
  type OpenApiSchema,
  type OpenApiSecurityRequirement,
  type OpenApiSecurityScheme,
  type OpenApiServer,
  readComments,
} from "./index.ts";
export { documentBaseOf, type OpenApiBase } from "./document-base.ts";
export type { OperationIds } from "./operation-names.ts";
