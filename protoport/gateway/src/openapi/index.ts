/** How is an API described? OpenAPI from descriptors and HTTP rules, without sockets. */
export { cleanText, commentOf, type Comments, commentsOf, readComments } from "./comments.ts";
export { createOpenApi, createOpenApiAsync, type OpenApiError, type OpenApiOptions } from "./create-open-api.ts";
export type { FieldKeywords, FieldRules } from "./field-rules.ts";
export { createMessageSchema } from "./message-schema.ts";
export type {
  OpenApiDocument,
  OpenApiInfo,
  OpenApiSchema,
  OpenApiSecurityRequirement,
  OpenApiSecurityScheme,
  OpenApiServer,
} from "./open-api-document.ts";
