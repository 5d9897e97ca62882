/** The entry `@protoport/gateway/reflection`, which implements `grpc.reflection` for any services. */
export { ServerReflection } from "@plantstore/protobuf/gen/grpc/reflection/v1/reflection_pb.js";
export { ServerReflection as ServerReflectionV1Alpha } from "@plantstore/protobuf/gen/grpc/reflection/v1alpha/reflection_pb.js";
export { createReflectionService } from "./reflection-service.ts";
