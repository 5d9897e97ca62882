/**
 * The entry `@plantstore/telemetry/opentelemetry`: spans and metrics of requests through `@opentelemetry/api`, for any
 * SDK that is registered. Uses only the hooks of the gateway.
 */
export { createTracing, type SharedWork, type Tracing, type TracingOptions } from "./tracing.ts";
export { type TraceIds, traceIdsOf } from "./request-context.ts";
export { withOpenTelemetry } from "./with-open-telemetry.ts";
