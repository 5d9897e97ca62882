/** The entry `@protoport/gateway/reflection`, which implements `grpc.reflection` for any services. */
export { ServerReflection } from "../protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
export { ServerReflection as ServerReflectionV1Alpha } from "../protobuf/gen/grpc/reflection/v1alpha/reflection_pb.ts";
export { createReflectionService } from "./reflection-service.ts";
