/** Converts nice-grpc handlers to grpc-js handlers. The module does not import nice-grpc, so that any version works. */
export { type GenericDefinition, toGrpcJsDefinition } from "./definition.ts";
export { type NiceHandler, toGrpcJsHandler } from "./handlers.ts";
