export { type Comments, readComments } from "./comments.ts";
export { createOpenApi, createOpenApiAsync, type OpenApiError, type OpenApiOptions } from "./create-open-api.ts";
export type {
  OpenApiDocument,
  OpenApiInfo,
  OpenApiSchema,
  OpenApiSecurityScheme,
  OpenApiServer,
} from "./open-api-document.ts";
