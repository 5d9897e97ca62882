/** nice-grpc handlers in the grpc-js form. Independent of the package nice-grpc, so that any version works. */
export { type GenericDefinition, toGrpcJsDefinition } from "./definition.ts";
export { type NiceHandler, toGrpcJsHandler } from "./handlers.ts";
