/**
 * `grpc.reflection` for any services: the entry `@plantstore/gateway/reflection`.
 */
export { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
export { ServerReflection as ServerReflectionV1Alpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
export { createReflectionService } from "./reflection-service.ts";
