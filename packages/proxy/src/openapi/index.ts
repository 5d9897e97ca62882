/**
 * Which OpenAPI document does a definition have, without a server? `npx @plantstore/proxy openapi set.binpb`, and the
 * same as a plugin of protoc and buf.
 *
 * Flow: flags, the base file and `openapiv2_swagger` → options of `createOpenApi` (document-options) → bytes
 * (write-document), which are those that a server sends.
 */
export { openApiCommand } from "./openapi-command.ts";
export { pluginCommand } from "./plugin-command.ts";
