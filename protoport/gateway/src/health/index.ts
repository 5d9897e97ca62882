/** The entry `@protoport/gateway/health`: `grpc.health.v1`, and probes for orchestrators and load balancers. */
export { Health } from "../protobuf/gen/grpc/health/v1/health_pb.ts";
export {
  drainGracefully,
  maxDrainMs,
  type DrainTimes,
  drainTimesDefault,
  Readiness,
  type ServerPart,
} from "./readiness.ts";
export { createHealthService, maxHealthRequestBytes, type HealthOptions } from "./health-service.ts";
export { createProbes, isProbe } from "./probes.ts";
