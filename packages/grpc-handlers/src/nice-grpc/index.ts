/** Handlers of nice-grpc in the grpc-js form. Independent of the package nice-grpc, so that any version of it works. */
export { type GenericDefinition, toGrpcJsDefinition } from "./definition.ts";
export { type NiceHandler, toGrpcJsHandler } from "./handlers.ts";
