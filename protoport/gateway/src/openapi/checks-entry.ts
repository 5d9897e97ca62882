/** The entry `@protoport/gateway/openapi-checks`, which exports what documents name, and which options they ignore. */
export { createOperationIds, findOperationIdClash, type OperationIds } from "./operation-names.ts";
export { unsupportedOpenApiOptions } from "./openapi-options.ts";
