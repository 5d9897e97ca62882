/**
 * How is a definition's OpenAPI document written without a server? `npx @protoport/proxy openapi set.binpb` and a
 * protoc and buf plugin write the document.
 *
 * Flow: flags, the base file and `openapiv2_swagger` → `createOpenApi` options → the bytes that a server sends
 * (create-document) → a file, standard output or a response (openapi-command, plugin-command).
 */
export { openApiCommand } from "./openapi-command.ts";
export { pluginCommand } from "./plugin-command.ts";
