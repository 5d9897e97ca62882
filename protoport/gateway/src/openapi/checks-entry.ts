/** The entry `@protoport/gateway/openapi-checks`, which exports what documents name and which options they ignore, and which tools omit fields. */
export { createOperationIds, findOperationIdClash, type OperationIds } from "./operation-names.ts";
export { withTruncatedInput } from "./message-schema.ts";
export { unsupportedOpenApiOptions } from "./openapi-options.ts";
