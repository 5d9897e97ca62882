/**
 * The entry `@protoport/telemetry/opentelemetry`: request spans and metrics through `@opentelemetry/api`, for any SDK
 * that is registered. The module uses only the gateway's hooks.
 */
export { createTracing, type SharedWork, type Tracing, type TracingOptions } from "./tracing.ts";
export { type TraceIds, traceIdsOf } from "./request-context.ts";
export { withOpenTelemetry } from "./with-open-telemetry.ts";
