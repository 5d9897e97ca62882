/**
 * How does OpenTelemetry see the requests? Spans and metrics by its API, `@opentelemetry/api`, for whichever SDK is
 * registered: the entry `@plantstore/telemetry/opentelemetry`.
 *
 * It knows the hooks of the gateway, and nothing of its inside.
 */
export { createTracing, type SharedWork, type Tracing, type TracingOptions } from "./tracing.ts";
export { type TraceIds, traceIdsOf } from "./request-context.ts";
export { withOpenTelemetry } from "./with-open-telemetry.ts";
